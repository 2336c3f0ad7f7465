-- Import: pieces of another store, taken over as they were, ids and all. Every piece may come twice.
-- A shard that is being imported has a life that no server has, so every gate that asks for it keeps others away.
local pieces = {}

local function start(shard)
  if shard.head > 0 then return end -- a repeat; nothing is changed under events that came meanwhile
  local info = A.info
  local first_term = info.first_term
  for _, found in ipairs(A.views) do
    load_seat(seat_keys(found.place))
    if found.seat.floor > info.head then refuse('floor', text(found.seat.floor), 'at most the last id ' .. text(info.head)) end
    first_term = max(first_term, found.seat.term + 1)
  end
  shard.adoptions, shard.layout, shard.sealed, shard.first_id, shard.first_term = info.adoptions, info.layout, info.sealed, info.first_id, first_term
  shard.head, shard.scheduled, shard.trimmed, shard.time, shard.gaps = info.trimmed, info.scheduled, info.trimmed, info.time, info.gaps
  save_shard(shard)
  for _, found in ipairs(A.views) do
    local k, seat = seat_keys(found.place), new_seat(0)
    for name, value in pairs(found.seat) do seat[name] = value end
    seat.term = 0
    save_seat(k, seat)
    call('DEL', k.window)
    hset(k.window, found.window)
  end
end
pieces.seats = start

function pieces.events(shard)
  local fresh = {}
  local last = shard.head
  for _, event in ipairs(A.rows) do
    if event[1] > shard.head then
      local expected = next_id(shard, last)
      if event[1] ~= expected then refuse('id of an event', text(event[1]), text(expected) .. ', the next one') end
      last = event[1]
      fresh[#fresh + 1] = event
    end
  end
  for _, event in ipairs(fresh) do
    local id, value, key, tail, priority = unpack(event)
    call('XADD', LOG, text(id), 'e', value)
    if key then put_named(TAIL, TAILZ, key, tail) end
    if priority > 0 then call('ZADD', URGENT, id, text(id) .. ':' .. priority) end
    shard.head, shard.time = id, event_time(value)
  end
  save_shard(shard)
end
function pieces.tails(shard)
  for _, row in ipairs(A.rows) do
    if row[3] <= shard.trimmed then put_named(TAIL, TAILZ, row[1], row[2]) end
  end
end
function pieces.objects()
  for _, row in ipairs(A.rows) do put_named(OBJECT, OBJECTZ, row[1], row[2]) end
end
function pieces.dedup()
  for _, row in ipairs(A.rows) do
    if call('HEXISTS', DEDUP, row[1]) == 0 then put_dedup(row[1], row[2]) end
  end
end
function pieces.sources()
  for _, row in ipairs(A.rows) do put_named(SOURCE, SOURCEZ, row[1], struct.pack('>I8I8I8', row[2], row[3], wall)) end
end
function pieces.scheduled()
  for _, row in ipairs(A.rows) do enter_schedule(unpack(row)) end
end
function pieces.tickets()
  for _, row in ipairs(A.rows) do put_numbered(TICKET, TICKETZ, row[1], pack(row[2])) end
end
function pieces.ends()
  for _, row in ipairs(A.rows) do
    local id, ended = row[1], row[2]
    if call('HEXISTS', ENDS, id) == 0 then
      put_numbered(ENDS, ENDSZ, id, pack(ended))
      call('ZADD', ENDS_LIFE, ended[LIFE], id)
      for index = 0, ended[CHUNKS] - 1 do call('ZREM', CHUNKZ, chunk_name(id, ended[RESULT], index)) end
    end
  end
end
function pieces.expired(shard)
  shard.expired, shard.dedup_evicted = A.rows[1], A.rows[2]
  save_shard(shard)
end
function pieces.sided(_, k)
  for _, row in ipairs(A.rows) do put_sided(k, row[2], row[1]) end
end
function pieces.states(_, k)
  for _, row in ipairs(A.rows) do put_named(k.state, k.statez, row[1], row[2]) end
end
function pieces.endings(_, k)
  for _, row in ipairs(A.rows) do put_numbered(k.ending, k.endingz, row[1], row[2]) end
end
function pieces.dead(_, k)
  for _, row in ipairs(A.rows) do put_numbered(k.dead, k.deadz, row[1], row[2]) end
end
function pieces.outbox(_, k)
  for _, row in ipairs(A.rows) do call('HSET', k.outbox, row[1], row[2]) end
end
function pieces.requests(_, k)
  for _, row in ipairs(A.rows) do put_numbered(k.request, k.requestz, row[1], row[2]) end
end
function pieces.tokens(_, k)
  for _, row in ipairs(A.rows) do
    put_named(k.token, k.tokenz, row[1], pack(row[2]))
    if row[2][2] > 0 then call('ZADD', k.token_life, row[2][2], row[1]) end
  end
end
function pieces.lanes(_, k)
  for _, row in ipairs(A.rows) do put_lane(k, row[1], find_lane(k, row[1]), row[2]) end
end

local function finish(shard)
  if shard.inc ~= IMPORTING and shard.head == A.finish.head then return end
  if shard.inc ~= IMPORTING then fail({ 'not_importing' }) end
  local following, head = next_id(shard, shard.head), A.finish.head
  if following <= head or shard.head > head or A.finish.inc == IMPORTING then
    refuse('head', text(head), 'the last id of the events imported; ' .. text(following) .. ' comes next')
  end
  shard.inc, shard.head, shard.time, shard.sealed = A.finish.inc, head, max(shard.time, A.finish.time), A.finish.sealed
  save_shard(shard)
end

local function main()
  local shard = load_shard()
  if A.finish then
    finish(shard)
    return { 'ok' }
  end
  if shard.inc ~= IMPORTING then fail({ 'not_importing' }) end
  local k = A.processor and seat_keys(1)
  if k then load_seat(k) end
  pieces[A.piece](shard, k)
  return { 'ok' }
end
