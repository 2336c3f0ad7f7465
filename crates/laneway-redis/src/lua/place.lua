-- Place: the part of a definition that a shard carries. A definition is written to the catalogue first; then each shard
-- takes it over, by its version, so that it may come late, twice or after a newer one. Also adoption (contract 1.4).
local function processors_of(list)
  local ids = {}
  for at, processor in ipairs(list) do ids[at] = processor[1] end
  return ids
end
local function new_shard()
  return { inc = A.importing and IMPORTING or CURRENT, adoptions = 0, first_id = 1, first_term = 0, head = 0, scheduled = 0, trimmed = 0,
    time = 0, gaps = {}, processors = {}, expired = 0, cursors = {}, def = 0, sealed = false }
end

local function adopt(shard)
  imported(shard)
  if shard.inc == CURRENT then return end
  if shard.inc ~= A.adopt then fail({ 'adopt', shard.inc }) end
  -- As `adopted_head` in laneway-core, by the clock of this server.
  local by_clock = min(max(floor(calendar / 1000) - floor(A.since / 1000), 0) * A.per_milli, A.by_clock_max)
  local first, last = shard.head + 1, shard.head < by_clock and by_clock or shard.head + A.jump
  if last > NUMBER_MAX then fail({ 'used_up' }) end
  local newest = shard.gaps[#shard.gaps]
  if newest and newest[2] + 1 == first then newest[2] = last
  else shard.gaps[#shard.gaps + 1] = { first, last } end
  shard.inc, shard.adoptions, shard.head = CURRENT, shard.adoptions + 1, last
  save_shard(shard)
end

-- The keys of all seats that are there must have come along.
local function places_of(shard)
  local places = {}
  for place, processor in ipairs(A.seats) do places[processor] = place end
  for _, processor in ipairs(shard.processors) do
    if not places[processor] then fail({ 'learn', shard.def, shard.processors, 0 }) end
  end
  return places
end
local function remove_seat(shard, k)
  local seat = find_seat(k)
  -- A processor that comes back under the same name gets higher terms, also when the clock went back.
  if seat and seat.term > 0 and seat.term >= shard.first_term then shard.first_term = seat.term + 1 end
  for _, key in pairs(k) do call('UNLINK', key) end
end

local function main()
  if A.adopt then
    adopt(load_shard())
    return { 'ok', false }
  end
  local found = call('GET', META)
  local shard = found and unpacked(found) or new_shard()
  if shard.def >= A.def then return { 'ok', shard.inc == IMPORTING } end
  local places = places_of(shard)
  if not A.live then
    for _, key in ipairs(KEYS) do call('UNLINK', key) end
    return { 'ok', false }
  end
  local wanted, had = {}, {}
  for _, processor in ipairs(A.processors) do wanted[processor[1]] = true end
  for _, processor in ipairs(shard.processors) do
    had[processor] = true
    if not wanted[processor] then remove_seat(shard, seat_keys(places[processor])) end
  end
  for _, processor in ipairs(A.processors) do
    if not had[processor[1]] then
      local start = A.importing and 0 or start_floor(shard, processor[2])
      save_seat(seat_keys(places[processor[1]]), new_seat(start))
    end
  end
  shard.processors, shard.def = processors_of(A.processors), A.def
  shard.layout, shard.stream_layout, shard.sealed = A.layout, A.layout, A.sealed
  shard.mode, shard.keep, shard.max_pending, shard.dedup_max, shard.dead_keep, shard.forget = unpack(A.settings)
  save_shard(shard)
  return { 'ok', shard.inc == IMPORTING }
end
