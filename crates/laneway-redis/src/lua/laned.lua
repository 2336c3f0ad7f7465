-- Lane rows: kind of block (0: none), clock and due time (-1: none), head and ahead (0: none), the record as Rust wrote it.
local L_KIND, L_CLOCK, L_DUE, L_HEAD, L_AHEAD, L_RECORD = 1, 2, 3, 4, 5, 6
local function find_lane(k, name)
  local row = call('HGET', k.lane, name)
  return row and unpacked(row)
end
local function due_lanes(k, clock) return clock == 0 and k.due_steady or k.due_calendar end
-- Sidings: one order for all lanes of a seat. The length before the name keeps one lane's ids together.
local function siding_name(lane, id) return struct.pack('>I2', #lane) .. lane .. struct.pack('>I6', id) end
local function siding_of(k, lane, limit)
  local prefix = struct.pack('>I2', #lane) .. lane
  local found, ids = call('ZRANGEBYLEX', k.siding, '[' .. prefix .. string.rep('\0', 6), '[' .. prefix .. string.rep('\255', 6), 'LIMIT', 0, limit), {}
  for at, name in ipairs(found) do ids[at] = struct.unpack('>I6', name, #prefix + 1) end
  return ids
end
local function put_sided(k, lane, id)
  call('ZADD', k.siding, 0, siding_name(lane, id))
  put_numbered(k.sided, k.sidedz, id, lane)
end
-- Replaces a lane's record and its places in the indexes.
local function put_lane(k, name, before, record)
  if before and before[L_KIND] > 0 then call('ZREM', k.kind, string.char(before[L_KIND]) .. name) end
  if before and before[L_DUE] >= 0 then call('ZREM', due_lanes(k, before[L_CLOCK]), name) end
  if not record then
    if before then drop_named(k.lane, k.lanez, name) end
    return
  end
  if record[L_KIND] > 0 then call('ZADD', k.kind, 0, string.char(record[L_KIND]) .. name) end
  if record[L_DUE] >= 0 then call('ZADD', due_lanes(k, record[L_CLOCK]), record[L_DUE], name) end
  put_named(k.lane, k.lanez, name, pack(record))
end
