-- Clock: reads the server's clock, and writes down what a process found when it compared it with its own. The record is
-- written only over the one that the process knows, and only if the server's clock reads what the process expects.
local CLOCK, STREAMS = unpack(KEYS, 1, 2)
local function main()
  local time = call('TIME')
  local now = time[1] * 1000000 + time[2]
  local found = call('GET', CLOCK)
  local version, record, written = 0, false, false
  if found then version, record = unpack(unpacked(found)) end
  local agrees = not A.expected or math.abs(now - A.expected) <= JUMP
  if A.record and A.version == version and agrees then
    version, record, written = version + 1, A.record, true
    call('SET', CLOCK, pack({ version, record }))
  end
  return { 'ok', now, version, record, call('HLEN', STREAMS) > 0, written }
end
