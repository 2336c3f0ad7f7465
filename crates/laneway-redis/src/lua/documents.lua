-- Documents: small versioned values, changed by compare-and-set. A removed one keeps its number.
-- A row: version, whether there is a value, the value.
local DOCUMENTS, DOCUMENTSZ = unpack(KEYS, 1, 2)
local function view(name, row)
  local version, there = struct.unpack('>I6B', row)
  return there == 1 and { name, version, string.sub(row, 8) } or false
end
local function main()
  if A.get then
    local row = call('HGET', DOCUMENTS, A.get)
    return { 'ok', row and view(A.get, row) or false }
  end
  if A.list then
    local found = {}
    for _, name in ipairs(call('ZRANGEBYLEX', DOCUMENTSZ, '[' .. A.list, '+')) do
      if string.sub(name, 1, #A.list) ~= A.list then break end
      found[#found + 1] = view(name, call('HGET', DOCUMENTS, name)) or nil
    end
    return { 'ok', found }
  end
  if A.clock then return { 'ok', lease } end
  local row = call('HGET', DOCUMENTS, A.put)
  local version, there = 0, 0
  if row then version, there = struct.unpack('>I6B', row) end
  local actual = there == 1 and version or 0
  if actual ~= A.expect then fail({ 'conflict', -1, 'version', actual }) end
  put_named(DOCUMENTS, DOCUMENTSZ, A.put, struct.pack('>I6B', version + 1, A.bytes and 1 or 0) .. (A.bytes or ''))
  return { 'ok', version + 1 }
end
