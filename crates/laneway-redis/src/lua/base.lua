-- The shard: its keys, its seats with their windows, ids with gaps, events as stored, the schedule, ends of jobs.
--
-- KEYS: the keys of the shard, then those of each seat the call is about (see keys.rs, which has the same order).
local META, LOG, TAIL, TAILZ, OBJECT, OBJECTZ, DEDUP, DEDUPZ, DEDUP_NAMES, SOURCE, SOURCEZ, SCHEDULE, SCHEDULEZ, DUE_STEADY,
  DUE_CALENDAR, URGENT, TICKET, TICKETZ, ENDS, ENDSZ, ENDS_LIFE, ENDS_GONE, SHORTENED, CHUNK, CHUNKZ =
  unpack(KEYS, 1, 25)
local SHARD_KEYS, SEAT_KEYS = 25, 22
local IMPORTING, WINDOW_IDS = string.rep('\255', 16), 65536

-- The shard ------------------------------------------------------------------------------------------------------
local function load_shard()
  local found = call('GET', META)
  if not found then fail({ 'missing', 'shard' }) end
  return unpacked(found)
end
local function save_shard(shard) call('SET', META, pack(shard)) end
local function imported(shard)
  if shard.inc == IMPORTING then fail({ 'importing' }) end
end
local function learned(shard, incarnation)
  if incarnation == CURRENT and shard.inc == CURRENT then return end
  imported(shard)
  fail({ 'adopt', shard.inc })
end
local function unsealed(shard)
  if shard.sealed then fail({ 'moved', shard.stream_layout }) end
end
-- The caller brought the keys of all seats; if it did not know them all it learns them and comes again.
local function know_all_seats(shard)
  if A.def ~= shard.def then fail({ 'learn', shard.def, shard.processors, shard.max_pending or 0 }) end
end

-- Seats ----------------------------------------------------------------------------------------------------------
local function seat_keys(place)
  local at = SHARD_KEYS + (place - 1) * SEAT_KEYS
  local k = {}
  k.seat, k.window, k.lane, k.lanez, k.kind, k.due_steady, k.due_calendar, k.sided, k.sidedz, k.siding, k.state, k.statez,
    k.ending, k.endingz, k.dead, k.deadz, k.outbox, k.request, k.requestz, k.token, k.tokenz, k.token_life =
    unpack(KEYS, at + 1, at + SEAT_KEYS)
  return k
end
local function find_seat(k)
  local found = call('GET', k.seat)
  return found and unpacked(found)
end
local function load_seat(k)
  local seat = find_seat(k)
  if not seat then fail({ 'missing', 'seat' }) end
  return seat
end
local function save_seat(k, seat) call('SET', k.seat, pack(seat)) end
-- Every seat of the shard: its processor, keys and row. After know_all_seats.
local function all_seats()
  local seats = {}
  for place, processor in ipairs(A.seats) do
    local k = seat_keys(place)
    local seat = find_seat(k)
    if seat then seats[#seats + 1] = { processor = processor, k = k, seat = seat } end
  end
  return seats
end
local function seat_view(k, s)
  return { s.term, s.nonce, s.version, s.adoptions, s.node, s.was_clean, s.clean, s.request_no, s.requests_applied, s.emitted,
    s.forwarded, s.status, s.note or '', s.life, s.floor, call('HGETALL', k.window) }
end
local function new_seat(at)
  return { term = 0, nonce = string.rep('\0', 16), version = 0, adoptions = 0, node = '', was_clean = true, clean = true,
    last_commit = false, request_no = 0, requests_applied = 0, emitted = 0, forwarded = 0, status = 0, note = '', life = 0, floor = at }
end
local LIFE_KEYS = { 'lane', 'lanez', 'kind', 'due_steady', 'due_calendar', 'sided', 'sidedz', 'siding', 'ending', 'endingz' }
local function forget_life(k)
  for _, name in ipairs(LIFE_KEYS) do call('UNLINK', k[name]) end
end

-- The window of a seat: words of 64 ids, each 8 bytes, above the floor ----------------------------------------------
local function has_bit(word, number)
  if not word then return false end
  local high, low = struct.unpack('>I4I4', word)
  if number < 32 then return bit.band(low, bit.lshift(1, number)) ~= 0 end
  return bit.band(high, bit.lshift(1, number - 32)) ~= 0
end
local function is_passed(k, seat, id)
  return id <= seat.floor or has_bit(call('HGET', k.window, floor(id / 64)), id % 64)
end
local FULL = string.rep('\255', 8)
local function ones_from(word, number)
  if word == FULL then return 64 - number end
  local run = 0
  while number + run < 64 and has_bit(word, number + run) do run = run + 1 end
  return run
end

-- Ids, which have gaps where the shard was adopted ------------------------------------------------------------------
local function in_gap(shard, id)
  for _, gap in ipairs(shard.gaps) do
    if gap[1] <= id and id <= gap[2] then return gap end
  end
  return false
end
local function next_id(shard, id)
  local following = id + 1
  for _, gap in ipairs(shard.gaps) do
    if gap[1] <= following and following <= gap[2] then following = gap[2] + 1 end
  end
  return following
end
local function count_ids(shard, from, to)
  local count = max(to - from, 0)
  for _, gap in ipairs(shard.gaps) do
    count = count - max(min(gap[2], to) + 1 - max(gap[1], from + 1), 0)
  end
  return count
end

-- Events as stored: see event.rs, which writes and reads the same bytes. ----------------------------------------------
-- version, flags, prev, seq, time, then as flags say: generation, incarnation, expiry, hold, job, priority, key; the body.
local GENERATION, INCARNATION, DELETE, EXPIRES, HOLD, JOB, PRIORITY, KEY = 1, 2, 4, 8, 16, 32, 64, 128
-- What flags add to the 22 bytes that every event begins with and the 3 bytes of lengths in its body.
local function overhead(flags)
  local bytes = 25
  if flags >= KEY then bytes = bytes + 2; flags = flags - KEY end
  if flags == 0 then return bytes end
  if bit.band(flags, GENERATION) ~= 0 then bytes = bytes + 8 end
  if bit.band(flags, INCARNATION) ~= 0 then bytes = bytes + 8 end
  if bit.band(flags, EXPIRES) ~= 0 then bytes = bytes + 8 end
  if bit.band(flags, HOLD) ~= 0 then bytes = bytes + 9 end
  if bit.band(flags, JOB) ~= 0 then bytes = bytes + 28 end
  if bit.band(flags, PRIORITY) ~= 0 then bytes = bytes + 1 end
  return bytes
end
-- Bytes that count for a page: key, type, headers, data.
local function event_size(value) return #value - overhead(string.byte(value, 2)) end
-- The job of an event, its responder, and its key.
local function event_parts(value)
  local flags, at, found = string.byte(value, 2), 23, {}
  if bit.band(flags, GENERATION) ~= 0 then at = at + 8 end
  if bit.band(flags, INCARNATION) ~= 0 then at = at + 8 end
  if bit.band(flags, EXPIRES) ~= 0 then at = at + 8 end
  if bit.band(flags, HOLD) ~= 0 then at = at + 9 end
  if bit.band(flags, JOB) ~= 0 then
    found.job = string.sub(value, at, at + 27)
    found.responder = struct.unpack('>I4', value, at + 16)
    at = at + 28
  end
  if bit.band(flags, PRIORITY) ~= 0 then at = at + 1 end
  if flags >= KEY then found.key = string.sub(value, at + 2, at + 1 + struct.unpack('>I2', value, at)) end
  return found
end
local function event_time(value) return struct.unpack('>I8', value, 15) end
local function find_event(id)
  local found = call('XRANGE', LOG, text(id), text(id))
  return found[1] and found[1][2][2]
end
-- The first event at or after this time that is still there. Times never fall, so halving finds it.
local function first_since(shard, time)
  local low, high = shard.trimmed, shard.head
  local function at_or_after(id)
    local found = call('XRANGE', LOG, text(id), '+', 'COUNT', 1)[1]
    if not found then return nil end
    return tonumber(string.match(found[1], '^%d+')), event_time(found[2][2])
  end
  local answer = nil
  while low < high do
    local middle = floor((low + high + 1) / 2)
    local id, found_time = at_or_after(middle)
    if id and found_time < time then
      low = id
      if low >= high then break end
    else
      if id then answer = id end
      high = middle - 1
    end
  end
  return answer
end
-- Where a processor begins: everything up to this counts as passed.
local function start_floor(shard, start)
  local kind, value = start[1], start[2]
  local at
  if kind == 0 then at = shard.trimmed
  elseif kind == 1 then at = shard.head
  elseif kind == 2 then at = max(value - 1, 0)
  else
    local first = first_since(shard, value)
    at = first and first - 1 or shard.head
  end
  return min(max(at, shard.trimmed), shard.head)
end

-- The schedule ------------------------------------------------------------------------------------------------------
local function due_key(clock) return clock == 0 and DUE_STEADY or DUE_CALENDAR end
local function age(clock, due) return (clock == 0 and steady or dates) - due end
local function enter_schedule(ticket, clock, due, accepted_at, draft)
  put_numbered(SCHEDULE, SCHEDULEZ, ticket, pack({ clock, due, accepted_at, draft }))
  -- Padded, so that of one due time the lower ticket comes first.
  call('ZADD', due_key(clock), due, string.format('%016.0f', ticket))
end
local function leave_schedule(ticket, clock)
  drop_numbered(SCHEDULE, SCHEDULEZ, ticket)
  call('ZREM', due_key(clock), string.format('%016.0f', ticket))
end
-- The first places, those that are due for longest first, then by ticket.
local function first_due(limit)
  local places = {}
  for clock = 0, 1 do
    local found = call('ZRANGE', due_key(clock), 0, limit - 1, 'WITHSCORES')
    for at = 1, #found, 2 do
      places[#places + 1] = { ticket = tonumber(found[at]), clock = clock, age = age(clock, tonumber(found[at + 1])) }
    end
  end
  table.sort(places, function(a, b)
    if a.age ~= b.age then return a.age > b.age end
    return a.ticket < b.ticket
  end)
  return places
end
local function next_due()
  local place = first_due(1)[1]
  return place and max(-place.age, 0) or -1
end

-- Ends of jobs: kept until, life (shorter when taken), finished at, kind of result, result or nonce, chunks, the rest.
local KEPT, LIFE, FINISHED, RESULT_KIND, RESULT, CHUNKS = 1, 2, 3, 4, 5, 6
local function is_alive(life) return life > 0 and life >= expiry end
local function find_end(id)
  local row = call('HGET', ENDS, id)
  return row and unpacked(row)
end
local function chunk_name(id, nonce, index) return struct.pack('>I6', id) .. nonce .. struct.pack('>I4', index) end
