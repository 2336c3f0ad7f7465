-- Drafts on their way to the end of their lanes: the chain, and the judgement of generations (append and promote).
-- Works on its own copy of the tails that change inside the call, so that a conflict has changed nothing.
-- A draft: key, body, generation, incarnation, delete, delay {mode, clock, micros}, priority, ttl,
-- dedup {id, body hash, window}, expected prev (0: none), number at its origin, job {responder, keep}; false or nothing where absent.
local D_KEY, D_BODY, D_GENERATION, D_INCARNATION, D_DELETE, D_DELAY, D_PRIORITY, D_TTL, D_DEDUP, D_PREV, D_NUMBER, D_JOB =
  1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
local ZERO8 = string.rep('\0', 8)
-- Tails are kept as numbers by key; only one with a generation, an incarnation or a removal has `more`.
local joins -- { shard, head, time, stamp, ids, seqs, more, changed, fresh, events, urgent }

local function begin_joins(shard)
  local time = max(shard.time, calendar)
  joins = { shard = shard, head = shard.head, time = time, stamp = struct.pack('>I8', time), ids = {}, seqs = {}, more = {}, changed = {}, fresh = {},
    events = {}, urgent = {} }
end
local function keep_tail(key, row)
  local id, seq, flags = struct.unpack('>I6I6B', row)
  joins.ids[key], joins.seqs[key] = id, seq
  if flags == 0 then return end
  local more = { deleted = bit.band(flags, 2) ~= 0, generation = false, incarnation = ZERO8 }
  if bit.band(flags, 4) ~= 0 then
    more.incarnation = string.sub(row, 22, 29)
    if bit.band(flags, 1) ~= 0 then more.generation = string.sub(row, 14, 21) end
  end
  joins.more[key] = more
end
local function write_tail(key)
  local more = joins.more[key]
  if not more then return struct.pack('>I6I6B', joins.ids[key], joins.seqs[key], 0) end
  local flags = (more.generation and 1 or 0) + (more.deleted and 2 or 0)
  if not more.generation and more.incarnation == ZERO8 then return struct.pack('>I6I6B', joins.ids[key], joins.seqs[key], flags) end
  return struct.pack('>I6I6B', joins.ids[key], joins.seqs[key], flags + 4) .. (more.generation or ZERO8) .. more.incarnation
end
-- Looks up the ends of the lanes of these drafts in one go.
local function look_up_tails(drafts)
  local keys, seen = {}, {}
  for _, draft in ipairs(drafts) do
    local key = draft[D_KEY]
    if key and not seen[key] then
      seen[key] = true
      keys[#keys + 1] = key
    end
  end
  if #keys == 0 then return end
  for at, row in ipairs(call('HMGET', TAIL, unpack(keys))) do
    if row then keep_tail(keys[at], row) else joins.fresh[keys[at]] = true end
  end
end

-- Numbers of 64 bits are compared by halves: a double has 53.
local function less(a, b)
  local a_high, a_low = struct.unpack('>I4I4', a)
  local b_high, b_low = struct.unpack('>I4I4', b)
  return a_high < b_high or (a_high == b_high and a_low < b_low)
end
local function one_more(number)
  local high, low = struct.unpack('>I4I4', number)
  if low < 4294967295 then return struct.pack('>I4I4', high, low + 1) end
  if high < 4294967295 then return struct.pack('>I4I4', high + 1, 0) end
  return number
end
local ONE8 = struct.pack('>I4I4', 0, 1)
local PLAIN_TAIL = { deleted = false, generation = false, incarnation = ZERO8 }
-- Latest mode: the generation of an accepted draft; nothing for a stale one (contract 1.14).
local function judge(key, draft)
  local wanted, incarnation = draft[D_GENERATION], draft[D_INCARNATION] or ZERO8
  local tail = joins.more[key] or PLAIN_TAIL
  if not joins.ids[key] or less(tail.incarnation, incarnation) then return wanted or ONE8 end
  if incarnation ~= tail.incarnation or tail.deleted then return nil end
  local newest = tail.generation or ZERO8
  if not wanted then return one_more(newest) end
  if less(wanted, newest) then return nil end
  return wanted
end

-- The layout is in laneway-core/src/job.rs: streams after the 8,191st have UUIDs of version 8, whose time takes fewer bits.
local function job_id(created, kind, number)
  local first, version, stream = floor(created / 1000), 28672, A.stream % 8192
  if A.stream > 8191 then
    local steps = math.max(0, math.min(floor((first - 1767225600000) / 16), 137438953471))
    first, version = steps * 2048 + floor(A.stream / 8192), 32768
  end
  return struct.pack('>I6I2I2I6', first, version + floor(stream / 2), 32768 + (stream % 2) * 8192 + A.partition * 2 + kind, number)
end
-- When a delay is over, by which clock.
local function due_of(delay)
  local clock, micros = delay[2], delay[3]
  return clock, clock == 0 and after(steady, micros) or micros
end

-- The parts of an event that most do not have, with their flags.
local function rare_parts(draft, id, generation, job)
  local flags, parts = 0, {}
  local incarnation, delay, wish, priority = draft[D_INCARNATION] or ZERO8, draft[D_DELAY], draft[D_JOB], draft[D_PRIORITY] or 0
  if generation then flags = GENERATION; parts[#parts + 1] = generation end
  if incarnation ~= ZERO8 then flags = flags + INCARNATION; parts[#parts + 1] = incarnation end
  if draft[D_DELETE] then flags = flags + DELETE end
  if draft[D_TTL] then flags = flags + EXPIRES; parts[#parts + 1] = struct.pack('>I8', after(wall, draft[D_TTL])) end
  if delay and delay[1] == 1 then
    flags = flags + HOLD
    parts[#parts + 1] = struct.pack('>BI8', due_of(delay))
  end
  if wish then
    flags = flags + JOB
    job = job or job_id(calendar, 0, id)
    parts[#parts + 1] = job .. struct.pack('>I4I8', wish[1], wish[2])
  end
  if priority > 0 then
    flags = flags + PRIORITY
    parts[#parts + 1] = string.char(priority)
    joins.urgent[#joins.urgent + 1] = id
    joins.urgent[#joins.urgent + 1] = text(id) .. ':' .. priority
  end
  return flags, table.concat(parts), wish and job or false
end

-- Gives a draft its place: answers id, prev, seq and job, or nothing where a newer one was accepted before.
local function offer(draft, job)
  local key, generation = draft[D_KEY], draft[D_GENERATION]
  if key and joins.shard.mode == 1 then
    generation = judge(key, draft)
    if not generation then return nil end
  end
  local id = joins.head + 1
  if id > NUMBER_MAX then fail({ 'used_up' }) end
  local flags, rare = 0, ''
  -- A plain draft is a key and a body.
  if #draft > 2 or generation then flags, rare, job = rare_parts(draft, id, generation, job) else job = false end
  local prev, seq, value = 0, 0, nil
  if key then
    prev, seq = joins.ids[key] or 0, (joins.seqs[key] or 0) + 1
    joins.ids[key], joins.seqs[key], joins.changed[key] = id, seq, true
    if generation or draft[D_INCARNATION] or draft[D_DELETE] then
      joins.more[key] = { generation = generation, incarnation = draft[D_INCARNATION] or ZERO8, deleted = draft[D_DELETE] or false }
    elseif joins.more[key] then
      joins.more[key] = nil
    end
    value = struct.pack('>BBI6I6', 1, flags + KEY, prev, seq) .. joins.stamp .. rare .. struct.pack('>I2', #key) .. key .. draft[D_BODY]
  else
    value = struct.pack('>BBI6I6', 1, flags, 0, 0) .. joins.stamp .. rare .. draft[D_BODY]
  end
  joins.head = id
  joins.events[#joins.events + 1] = value
  return id, prev, seq, job
end

-- Numbers of the log as text. Only every tenth is formatted: for the others that would cost as much as the command they are for.
local DIGITS = { [0] = '0', '1', '2', '3', '4', '5', '6', '7', '8', '9' }
local function write_events()
  local events, before, tens = joins.events, joins.head - #joins.events, nil
  for at = 1, #events do
    local digit = (before + at) % 10
    if digit == 0 or not tens then tens = before + at < 10 and '' or text((before + at - digit) / 10) end
    call('XADD', LOG, tens .. DIGITS[digit], 'e', events[at])
  end
  if #events == 0 then return end
  joins.shard.head = joins.head
  joins.shard.time = joins.time
end
-- Rows are keys and ends of lanes, `names` the keys of those that are new.
local function write_tails(rows, names)
  hset(TAIL, rows)
  zadd(TAILZ, names)
end
-- Writes the events that joined, their tails and the urgent index; the caller saves the shard.
local function write_joins()
  write_events()
  local rows, names = {}, {}
  for key in pairs(joins.changed) do
    rows[#rows + 1] = key
    rows[#rows + 1] = write_tail(key)
    if joins.fresh[key] then names[#names + 1] = 0; names[#names + 1] = key end
  end
  write_tails(rows, names)
  zadd(URGENT, joins.urgent)
end

-- Dedup ids: body hash, until, event (0 while it waits), the first receipt (contract 1.13).
local DD_BODY, DD_UNTIL, DD_EVENT, DD_RECEIPT = 1, 2, 3, 4
local function dedup_name(key, id)
  if key then return struct.pack('>BI2', 1, #key) .. key .. id end
  return '\0' .. id
end
local function put_dedup(name, row)
  call('HSET', DEDUP, name, pack(row))
  call('ZADD', DEDUPZ, row[DD_UNTIL], name)
  call('ZADD', DEDUP_NAMES, 0, name)
end
local function drop_dedup(name)
  call('HDEL', DEDUP, name)
  call('ZREM', DEDUPZ, name)
  call('ZREM', DEDUP_NAMES, name)
end
local function is_waiting(row)
  return row[DD_RECEIPT][1] == 's' and row[DD_EVENT] == 0 and call('HEXISTS', SCHEDULE, row[DD_RECEIPT][2]) == 1
end
