-- Jobs: the submitter's view, from the job's place alone (contract 1.11 and 1.12).
-- A number is {kind, number}: kind 0 an event's id, 1 a ticket. A ticket row: {1, event} joined,
-- {2, end, reason, finished at, keep, kept until} ended without an event.
local shard, places

local function result_of(id, found)
  if found[RESULT_KIND] == 1 then return { found[RESULT] } end
  if found[RESULT_KIND] == 0 then return false end
  local chunks = {}
  for index = 0, found[CHUNKS] - 1 do
    local chunk = call('HGET', CHUNK, chunk_name(id, found[RESULT], index))
    if not chunk then fail({ 'corrupt', 'result of event ' .. text(id) .. ': chunk ' .. index .. ' is missing' }) end
    chunks[#chunks + 1] = chunk
  end
  return chunks
end
local function job_of_event(id)
  if id == 0 or id > shard.head or in_gap(shard, id) then return { 'unknown' } end
  local ended = find_end(id)
  if ended then
    if is_alive(ended[LIFE]) then return { 'ended', id, ended } end
    return { 'gone' }
  end
  local event = find_event(id)
  if not event then return { 'gone' } end
  local parts = event_parts(event)
  if not parts.job then return { 'unknown' } end
  local k = places[parts.responder] and seat_keys(places[parts.responder])
  local seat = k and find_seat(k)
  if not seat then return { 'gone' } end
  if is_passed(k, seat, id) and call('HEXISTS', k.sided, id) == 0 then return { 'gone' } end
  local lane = find_lane(k, parts.key and 'k' .. parts.key or 'n' .. struct.pack('>I8', id))
  return { 'pending', id, parts.key or false, lane and lane[L_HEAD] == id and lane[L_RECORD] or false }
end
local function job_of(number)
  if number[1] == 0 then return job_of_event(number[2]) end
  local ticket = number[2]
  if ticket == 0 or ticket > shard.scheduled then return { 'unknown' } end
  local waiting = call('HGET', SCHEDULE, ticket)
  if waiting then
    local row = unpacked(waiting)
    return { 'scheduled', row[1], row[2] }
  end
  local row = call('HGET', TICKET, ticket)
  row = row and unpacked(row)
  if row and row[1] == 1 then return job_of_event(row[2]) end
  if row and is_alive(row[6]) then return { 'never', ticket, row } end
  return { 'gone' }
end
local function ended_or_gone(number)
  local found = job_of(number)
  if found[1] == 'pending' or found[1] == 'scheduled' then fail({ 'conflict', -1, 'unfinished' }) end
  return found
end
local function shorten(found, life)
  local row = found[3]
  if found[1] == 'never' then
    row[6] = life
    call('HSET', TICKET, found[2], pack(row))
  else
    row[LIFE] = life
    call('HSET', ENDS, found[2], pack(row))
    call('ZADD', ENDS_LIFE, life, found[2])
    call('ZADD', SHORTENED, row[KEPT], found[2])
  end
end
local function shown(found, results)
  if found[1] ~= 'ended' then return found end
  local row = found[3]
  return { 'ended', found[2], row, results and result_of(found[2], row) or false }
end
local function cancel(ticket)
  local row = call('HGET', SCHEDULE, ticket)
  if not row then
    local left = call('HGET', TICKET, ticket)
    if left and unpacked(left)[1] == 1 then fail({ 'conflict', -1, 'due' }) end
    return shown(job_of({ 1, ticket }), false)
  end
  local waiting = unpacked(row)
  local wish = waiting[4][D_JOB]
  leave_schedule(ticket, waiting[1])
  if not wish then return { 'gone' } end
  local ended = { 2, 4, 'cancelled before it was due', wall, wish[2], after(wall, wish[2]), waiting[3] }
  put_numbered(TICKET, TICKETZ, ticket, pack(ended))
  tell('j' .. job_id(waiting[3], 1, ticket))
  return { 'never', ticket, ended }
end

local function main()
  shard = load_shard()
  know_all_seats(shard)
  places = {}
  for place, processor in ipairs(A.seats) do places[processor] = place end
  local views = {}
  if A.get then
    for at, number in ipairs(A.get) do views[at] = shown(job_of(number), A.results) end
  elseif A.take then
    local found = ended_or_gone(A.take)
    local is_end = found[1] == 'ended' or found[1] == 'never'
    local life = found[1] == 'ended' and found[3][LIFE] or found[1] == 'never' and found[3][6]
    views[1] = shown(found, true)
    if is_end and after(wall, A.grace) < life then shorten(found, after(wall, A.grace)) end
  elseif A.forget then
    local found = ended_or_gone(A.forget)
    views[1] = found
    if found[1] == 'ended' or found[1] == 'never' then
      shorten(found, 0)
      views[1] = { 'gone' }
    end
  else
    views[1] = cancel(A.cancel)
  end
  return { 'ok', views }
end
