-- Trim: what retention allows to go. Never an event that a registered processor has not passed, also not one in a siding;
-- rows go when their own time is over, a bounded number per call.
local ROWS_PER_CALL = 200

local function over_by(order, limit) return call('ZRANGEBYSCORE', order, '-inf', '(' .. text(max(limit, 1)), 'LIMIT', 0, ROWS_PER_CALL) end
local function through_of(order, through) return call('ZRANGEBYSCORE', order, '-inf', through, 'LIMIT', 0, ROWS_PER_CALL) end

-- Looks at the next rows of an order by name, where the last call stopped.
local function sweep_named(shard, cursor, key, order, limit, is_over)
  local from, gone = shard.cursors[cursor], 0
  local names = call('ZRANGEBYLEX', order, from and '(' .. from or '-', '+', 'LIMIT', 0, limit)
  for _, name in ipairs(names) do
    if is_over(name, call('HGET', key, name)) then
      drop_named(key, order, name)
      gone = gone + 1
    end
  end
  shard.cursors[cursor] = #names == limit and names[#names] or nil
  return gone
end

-- What is up to an id that was never given is up to the last one before it: nobody missed anything in a gap.
local function last_given(shard, id)
  for at = #shard.gaps, 1, -1 do
    local gap = shard.gaps[at]
    if gap[1] <= id and id <= gap[2] then id = gap[1] - 1 end
  end
  return id
end

-- Lanes that were idle for long. The end of a lane has no time; instead the shard marks now and then how far its ids had
-- come, sixteen times in the length that counts, and a lane not beyond an old mark is at least as old. For each mark that is
-- old enough all lanes are looked at, a piece at a time.
local MARKS, MARKS_MAX = 16, 64
local function idle_through(shard)
  local length, marks, newest = max(shard.forget, shard.keep), {}, 0
  for _, mark in ipairs(shard.marks or {}) do
    -- A mark of the future was made by a clock that was wrong.
    if mark[1] <= expiry then marks[#marks + 1] = mark end
  end
  local last = marks[#marks]
  local is_due = not last or last[1] + floor(length / MARKS) <= expiry
  if is_due and #marks < MARKS_MAX then marks[#marks + 1] = { expiry, last_given(shard, shard.head) } end
  for at, mark in ipairs(marks) do
    if mark[1] + length <= expiry and mark[2] <= shard.trimmed then newest = at end
  end
  for _ = 2, newest do table.remove(marks, 1) end
  shard.marks = marks
  return newest > 0 and marks[1][2] or 0
end
local function forget_lanes(shard, seats)
  if (shard.forget or 0) == 0 or not is_settled then return 0, false end
  local through = idle_through(shard)
  if shard.sweep then through = shard.sweep
  elseif through <= (shard.swept or 0) then return 0, false end
  local limit = max(floor(500 / (1 + #seats)), 50)
  local gone = sweep_named(shard, 'tail', TAIL, TAILZ, limit, function(key, row)
    if struct.unpack('>I6', row) > through or call('HEXISTS', OBJECT, key) == 1 then return false end
    for _, found in ipairs(seats) do drop_named(found.k.state, found.k.statez, key) end
    return true
  end)
  if shard.cursors.tail then shard.sweep = through
  else shard.sweep, shard.swept = nil, through end
  return gone, shard.sweep ~= nil
end

-- While log time is ahead of the time of day, the age of an event does not follow from its time. Instead the shard marks now
-- and then how far its ids had come, as for idle lanes. Answers the last event that is old enough by these marks.
local function aged_through(shard)
  local is_ahead, marks, old = shard.time > wall + JUMP, {}, 0
  if not is_settled or not (is_ahead or shard.ahead) then return 0 end
  for _, mark in ipairs(shard.ahead or {}) do
    if mark[1] <= wall then marks[#marks + 1] = mark end
  end
  local last = marks[#marks]
  if is_ahead and (not last or last[1] + floor(shard.keep / MARKS) <= wall and last[2] < shard.head) then
    marks[#marks + 1] = { wall, shard.head }
  end
  for at, mark in ipairs(marks) do
    if mark[1] + shard.keep <= expiry then old = at end
  end
  for _ = 2, old do table.remove(marks, 1) end
  last = marks[#marks]
  local is_over = not is_ahead and (not last or last[2] <= shard.trimmed)
  shard.ahead = not is_over and marks or nil
  return old > 0 and marks[1][2] or 0
end

local function bound(shard, seats)
  local through = shard.head
  for _, found in ipairs(seats) do
    through = min(through, found.seat.floor)
    local first = call('ZRANGE', found.k.sidedz, 0, 0)[1]
    if first then through = min(through, tonumber(first) - 1) end
  end
  if shard.keep > 0 then
    local first = first_since(shard, max(expiry - shard.keep, 0))
    if first then through = min(through, max(first - 1, aged_through(shard))) end
  end
  return max(last_given(shard, through), shard.trimmed)
end

local function trim_dedup()
  local gone = 0
  for _, name in ipairs(over_by(DEDUPZ, expiry)) do
    if not is_waiting(unpacked(call('HGET', DEDUP, name))) then
      drop_dedup(name)
      gone = gone + 1
    end
  end
  return gone
end
local function trim_seat(shard, k, through)
  local endings = through_of(k.endingz, through)
  for _, id in ipairs(endings) do drop_numbered(k.ending, k.endingz, id) end
  local gone = #endings
  for _, id in ipairs(call('ZRANGE', k.deadz, 0, ROWS_PER_CALL - 1)) do
    if struct.unpack('>I8', call('HGET', k.dead, id)) < expiry - shard.dead_keep then
      drop_numbered(k.dead, k.deadz, id)
      gone = gone + 1
    end
  end
  for _, token in ipairs(over_by(k.token_life, expiry)) do
    drop_named(k.token, k.tokenz, token)
    call('ZREM', k.token_life, token)
    gone = gone + 1
  end
  return gone
end
local function drop_end(id)
  drop_numbered(ENDS, ENDSZ, id)
  call('ZREM', ENDS_GONE, id)
end
-- An end past its life loses its result; the rest goes with its event, because a job ends once.
local function trim_ends(shard)
  local gone = 0
  for _, id in ipairs(over_by(ENDS_LIFE, expiry)) do
    local ended = find_end(id)
    call('ZREM', ENDS_LIFE, id)
    if ended[RESULT_KIND] == 2 then
      for index = 0, ended[CHUNKS] - 1 do
        gone = gone + call('HDEL', CHUNK, chunk_name(tonumber(id), ended[RESULT], index))
      end
    end
    ended[LIFE], ended[RESULT_KIND], ended[RESULT], ended[CHUNKS] = 0, 0, '', 0
    call('HSET', ENDS, id, pack(ended))
    call('ZADD', ENDS_GONE, id, id)
  end
  for _, id in ipairs(through_of(ENDS_GONE, shard.trimmed)) do drop_end(id) end
  for _, name in ipairs(over_by(CHUNKZ, expiry)) do
    call('HDEL', CHUNK, name)
    call('ZREM', CHUNKZ, name)
    gone = gone + 1
  end
  local over = over_by(SHORTENED, expiry)
  for _, id in ipairs(over) do call('ZREM', SHORTENED, id) end
  return gone + #over
end
-- Tickets of jobs that nobody can read any more.
local function trim_tickets(shard, places)
  local gone = 0
  local from = shard.cursors.ticket or 0
  local tickets = call('ZRANGEBYSCORE', TICKETZ, '(' .. text(from), '+inf', 'LIMIT', 0, ROWS_PER_CALL)
  for _, ticket in ipairs(tickets) do
    local row = unpacked(call('HGET', TICKET, ticket))
    local over
    if row[1] == 2 then
      over = not is_alive(row[6])
    else
      local ended = find_end(row[2])
      local event = not ended and find_event(row[2])
      local parts = event and event_parts(event)
      local k = parts and parts.responder and places[parts.responder] and seat_keys(places[parts.responder])
      local seat = k and find_seat(k)
      if ended then over = not is_alive(ended[LIFE])
      else over = not seat or (is_passed(k, seat, row[2]) and call('HEXISTS', k.sided, row[2]) == 0) end
    end
    if over then
      drop_numbered(TICKET, TICKETZ, ticket)
      gone = gone + 1
    end
  end
  shard.cursors.ticket = #tickets == ROWS_PER_CALL and tonumber(tickets[#tickets]) or nil
  return gone
end

local function main()
  local shard = load_shard()
  imported(shard)
  know_all_seats(shard)
  local seats, places = all_seats(), {}
  for place, processor in ipairs(A.seats) do places[processor] = place end
  local through = bound(shard, seats)
  local events = count_ids(shard, shard.trimmed, through)
  local expired = #seats == 0 and events or 0
  if through > shard.trimmed then
    call('XTRIM', LOG, 'MINID', text(through + 1))
    shard.trimmed = through
    shard.expired = shard.expired + expired
  end
  local urgent = through_of(URGENT, through)
  for _, name in ipairs(urgent) do call('ZREM', URGENT, name) end
  local rows = #urgent + trim_dedup()
  for _, found in ipairs(seats) do rows = rows + trim_seat(shard, found.k, through) end
  local forgotten, more = forget_lanes(shard, seats)
  rows = rows + trim_tickets(shard, places) + trim_ends(shard) + forgotten
  -- Producers make a name per run; one that was silent for longer than any repeat takes is let go.
  sweep_named(shard, 'source', SOURCE, SOURCEZ, ROWS_PER_CALL, function(name, row)
    return string.sub(name, 1, #A.fleeting) == A.fleeting and struct.unpack('>I8', row, 17) < expiry - A.silence
  end)
  save_shard(shard)
  return { 'ok', next_id(shard, through), events, expired, rows, more }
end
