-- Define: the catalogue, one tag for the whole store. A definition lists what its shards must take over; it stays in TODO until
-- the caller says that all of them have. Whoever finds something there finishes it.
-- A row: id, name, version, settings as Rust wrote them, partitions, mode, layout, sealed partitions,
-- processors {id, name, settings, start}, importing.
local STREAMS, NUMBERS, TODO = unpack(KEYS, 1, 3)

local function load(id)
  local row = call('HGET', STREAMS, id)
  return row and unpacked(row)
end
local function all()
  local rows = {}
  for _, row in ipairs(call('HVALS', STREAMS)) do rows[#rows + 1] = unpacked(row) end
  table.sort(rows, function(a, b) return a.id < b.id end)
  return rows
end
local function named(name)
  for _, row in ipairs(all()) do
    if row.name == name then return row end
  end
end
local function view(row)
  local processors = {}
  for at, found in ipairs(row.processors) do processors[at] = { found[1], found[2], found[3], found[4] } end
  return { row.id, row.name, row.version, row.settings, row.layout, processors, row.sealed, row.importing }
end
local function last_number(name) return tonumber(call('HGET', NUMBERS, name) or '0') end
local function next_number(name, field, most)
  local number = last_number(name) + 1
  if number > most then refuse(field, text(number), 'at most ' .. text(most)) end
  return number
end
local function raise(name, number)
  if last_number(name) < number then call('HSET', NUMBERS, name, number) end
end
local function save(row)
  local packed = pack(row)
  call('HSET', STREAMS, row.id, packed)
  call('HSET', TODO, row.id, packed)
  return { 'ok', view(row) }
end
local function expected(row, version)
  if not row or row.version ~= version then fail({ 'conflict', -1, 'version', row and row.version or 0 }) end
  return row
end
local function existing(id)
  local row = load(id)
  if not row then fail({ 'missing', 'stream' }) end
  return row
end

local ops = {}
function ops.create()
  local there = named(A.name)
  if there then fail({ 'conflict', -1, 'version', there.version }) end
  local id = next_number('streams', 'streams ever created', A.streams_max)
  raise('streams', id)
  return save({ id = id, name = A.name, version = 1, settings = A.settings, partitions = A.partitions, mode = A.mode, layout = 1,
    sealed = {}, processors = {}, importing = false })
end
function ops.change()
  local row = expected(named(A.name), A.expect)
  if row.partitions ~= A.partitions then refuse('partitions', text(A.partitions), text(row.partitions) .. ', which never changes') end
  if row.mode ~= A.mode then
    local modes = { [0] = 'Queue', 'Latest' }
    refuse('mode', modes[A.mode], modes[row.mode] .. ', which never changes')
  end
  row.version, row.settings = row.version + 1, A.settings
  return save(row)
end
function ops.remove()
  local row = expected(existing(A.id), A.expect)
  row.version, row.removed = row.version + 1, true
  call('HDEL', STREAMS, row.id)
  call('HSET', TODO, row.id, pack(row))
  return { 'ok', view(row) }
end
function ops.register()
  local row = existing(A.id)
  for _, other in ipairs(all()) do
    for _, processor in ipairs(other.processors) do
      if other.id ~= row.id and processor[2] == A.name then
        refuse('name of a processor', A.name, 'unique; it is registered on stream ' .. other.name)
      end
    end
  end
  for _, processor in ipairs(row.processors) do
    if processor[2] == A.name then
      if processor[3] == A.settings then return { 'ok', view(row) } end
      processor[3] = A.settings
      row.version = row.version + 1
      return save(row)
    end
  end
  local number = next_number('processors', 'processors ever registered', 4294967295)
  raise('processors', number)
  row.processors[#row.processors + 1] = { number, A.name, A.settings, A.start }
  row.version = row.version + 1
  return save(row)
end
function ops.unregister()
  for _, row in ipairs(all()) do
    for at, processor in ipairs(row.processors) do
      if processor[1] == A.processor then
        table.remove(row.processors, at)
        row.version = row.version + 1
        return save(row)
      end
    end
  end
  fail({ 'missing', 'processor' })
end
function ops.seal()
  local row = existing(A.id)
  if A.partition >= row.partitions then fail({ 'missing', 'shard' }) end
  for _, sealed in ipairs(row.sealed) do
    if sealed == A.partition then return { 'ok', view(row) } end
  end
  row.sealed[#row.sealed + 1] = A.partition
  row.layout, row.version = row.layout + 1, row.version + 1
  return save(row)
end
-- Numbers that were given before may be named by job ids and sources, so they never come again.
function ops.import()
  local row = load(A.row.id)
  if row and row.importing and pack(view(row)) == pack(view(A.row)) then return { 'ok', view(row), true } end
  local last = last_number('streams')
  if A.row.id <= last or A.row.id > A.streams_max then
    refuse('number of the stream', text(A.row.id), 'above ' .. text(last) .. ', the last one given here, and at most ' .. text(A.streams_max))
  end
  last = last_number('processors')
  local names = {}
  for _, processor in ipairs(A.row.processors) do
    names[processor[2]] = true
    if processor[1] <= last then refuse('number of the processor', text(processor[1]), 'above ' .. text(last) .. ', the last one given here') end
  end
  for _, other in ipairs(all()) do
    if other.name == A.row.name then refuse('name of the stream', A.row.name, 'unique; it is there already') end
    for _, processor in ipairs(other.processors) do
      if names[processor[2]] then refuse('name of the processor', processor[2], 'unique; it is registered on stream ' .. other.name) end
    end
  end
  raise('streams', A.row.id)
  for _, processor in ipairs(A.row.processors) do raise('processors', processor[1]) end
  return save(A.row)
end
function ops.numbers()
  raise('streams', A.streams)
  raise('processors', A.processors)
  return { 'ok' }
end
-- All shards have this version, or a newer one is on its way with a caller of its own.
function ops.done()
  local row = call('HGET', TODO, A.id)
  if row and unpacked(row).version == A.version then call('HDEL', TODO, A.id) end
  return { 'ok' }
end
function ops.todo()
  local rows = {}
  for _, packed in ipairs(call('HVALS', TODO)) do
    local row = unpacked(packed)
    rows[#rows + 1] = { view(row), row.removed or false }
  end
  return { 'ok', rows }
end
function ops.get() return { 'ok', view(existing(A.id)) } end
function ops.list()
  local rows = {}
  for at, row in ipairs(all()) do rows[at] = view(row) end
  return { 'ok', rows, last_number('streams'), last_number('processors'), calendar, steady }
end

local function main() return ops[A.op]() end
