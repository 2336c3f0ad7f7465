-- What every script begins with: its call, time, answers, and rows that are listed by a number or by a name.
--
-- ARGV: 1 the call in msgpack, 2 log time, 3 steady time, 4 the life of the server that the connection learned, 5 the
-- channel of wake-ups, 6 the time of day, 7 up to when dates are due, 8 up to when lives are over, 9 the time of
-- leases, 10 what the server's clock should read (empty: all times are given), 11 not empty: the clock is settled. See
-- clock.rs.
-- A script checks everything before its first change, and leaves by `fail`; so nothing is ever undone.
local call, pack, unpacked = redis.call, cmsgpack.pack, cmsgpack.unpack
local floor, min, max = math.floor, math.min, math.max
local A = unpacked(ARGV[1])
local CURRENT = ARGV[4]
-- Numbers are doubles: times from 2^53 on are the end of time. Ids stop at 2^48.
local END_OF_TIME, NUMBER_MAX, PAGE_MAX, PAGE_BYTES_MAX = 9007199254740992, 281474976710655, 10000, 8388608
local JUMP = 60000000
local calendar, steady, wall, dates = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[6]), tonumber(ARGV[7])
local expiry, lease, is_settled, jumped = tonumber(ARGV[8]), tonumber(ARGV[9]), ARGV[11] ~= '', false
if ARGV[10] ~= '' then
  local time = call('TIME')
  local now = time[1] * 1000000 + time[2]
  local passed = now - tonumber(ARGV[10])
  -- A time that was not judged is not used: the caller compares the clocks and comes again.
  if math.abs(passed) > JUMP then jumped = now end
  calendar, steady, wall, dates, lease = calendar + passed, steady + passed, wall + passed, dates + passed, lease + passed
  if is_settled then expiry = expiry + passed end
end

local function fail(answer) error({ answer = answer }) end
local function text(number) return string.format('%.0f', number) end
local function refuse(field, value, limit) fail({ 'refused', field, value, limit }) end
local function after(time, length) return min(time + length, END_OF_TIME) end
local function tell(topic) call('PUBLISH', ARGV[5], topic) end

-- Runs a command on many arguments in pieces, because a call takes only so many.
local function each_piece(list, size, run)
  for first = 1, #list, size do run(unpack(list, first, min(first + size - 1, #list))) end
end
local function hset(key, pairs_of)
  each_piece(pairs_of, 4000, function(...) call('HSET', key, ...) end)
end
local function zadd(key, pairs_of)
  each_piece(pairs_of, 4000, function(...) call('ZADD', key, ...) end)
end
-- Rows that are listed by a number or by a name ---------------------------------------------------------------------
local function put_numbered(key, order, number, row)
  call('HSET', key, number, row)
  call('ZADD', order, number, number)
end
local function drop_numbered(key, order, number)
  call('HDEL', key, number)
  call('ZREM', order, number)
end
-- Numbers after this one and their rows, one after the other; ends early when the rows are large.
local function page_numbered(key, order, from, limit)
  local found, rows, bytes = {}, {}, 0
  found = call('ZRANGEBYSCORE', order, '(' .. text(from), '+inf', 'LIMIT', 0, min(limit, PAGE_MAX))
  for _, number in ipairs(found) do
    if bytes >= PAGE_BYTES_MAX then break end
    local row = call('HGET', key, number)
    bytes = bytes + #row
    rows[#rows + 1] = tonumber(number)
    rows[#rows + 1] = row
  end
  return rows
end
local function put_named(key, order, name, row)
  if call('HSET', key, name, row) == 1 then call('ZADD', order, 0, name) end
end
local function drop_named(key, order, name)
  call('HDEL', key, name)
  call('ZREM', order, name)
end
local function page_named(key, order, from, limit)
  local rows, bytes = {}, 0
  local start = from and '(' .. from or '-'
  for _, name in ipairs(call('ZRANGEBYLEX', order, start, '+', 'LIMIT', 0, min(limit, PAGE_MAX))) do
    if bytes >= PAGE_BYTES_MAX then break end
    local row = call('HGET', key, name)
    bytes = bytes + #row
    rows[#rows + 1] = name
    rows[#rows + 1] = row
  end
  return rows
end

