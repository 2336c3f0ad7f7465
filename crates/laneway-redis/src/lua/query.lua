-- Query: one list of a shard or of a seat. Changes nothing.
local lists = {}
-- About how many ends of jobs a page of those that can be read looks at, at most.
local ENDS_EXAMINED_MAX = 1024

-- The shard as others see it.
local function shard_view(s)
  return { s.inc, s.adoptions, s.layout, s.sealed, s.first_id, s.first_term, s.head, s.scheduled, s.trimmed, s.time, s.gaps }
end
function lists.seats(shard)
  know_all_seats(shard)
  local views = {}
  for at, found in ipairs(all_seats()) do views[at] = { found.processor, seat_view(found.k, found.seat) } end
  return { shard_view(shard), views }
end
function lists.lane()
  local tail = call('HGET', TAIL, A.from)
  return tail and { tail, call('HGET', OBJECT, A.from) or false } or false
end
function lists.tails()
  local rows = page_named(TAIL, TAILZ, A.from, A.limit)
  local tails = {}
  for at = 1, #rows, 2 do tails[#tails + 1] = { rows[at], rows[at + 1], call('HGET', OBJECT, rows[at]) or false } end
  return tails
end
function lists.dead(_, k) return page_numbered(k.dead, k.deadz, A.from, A.limit) end
function lists.endings(_, k) return page_numbered(k.ending, k.endingz, A.from, A.limit) end
function lists.requests(_, k) return page_numbered(k.request, k.requestz, A.from, A.limit) end
function lists.outbox(_, k, seat)
  local rows = {}
  local first = max(A.from, seat.forwarded) + 1
  for number = first, min(seat.emitted, first + min(A.limit, PAGE_MAX) - 1) do
    rows[#rows + 1] = number
    rows[#rows + 1] = call('HGET', k.outbox, number)
  end
  return rows
end
function lists.states(_, k) return page_named(k.state, k.statez, A.from, A.limit) end
function lists.sided(_, k) return page_numbered(k.sided, k.sidedz, A.from, A.limit) end
function lists.tokens(_, k)
  local rows = page_named(k.token, k.tokenz, A.from, A.limit)
  for at = 2, #rows, 2 do rows[at] = unpacked(rows[at]) end
  return rows
end
-- Ends that can still be read, and behind which event to go on, 0 at the end; with `all` also those past their life,
-- while their event is there. Those that are passed over are looked at only so many at a time.
function lists.ends(shard)
  local rows, from, bytes, examined, limit = {}, A.from, 0, 0, min(A.limit, PAGE_MAX)
  while #rows < limit and bytes < PAGE_BYTES_MAX and (A.all or examined < ENDS_EXAMINED_MAX) do
    local found = call('ZRANGEBYSCORE', ENDSZ, '(' .. text(from), '+inf', 'LIMIT', 0, 64)
    if #found == 0 then return { rows, 0 } end
    examined = examined + #found
    for _, id in ipairs(found) do
      if #rows >= limit then break end
      from = tonumber(id)
      local row = call('HGET', ENDS, id)
      local ended = unpacked(row)
      local lives = is_alive(ended[LIFE])
      if lives or (A.all and from > shard.trimmed) then
        if not lives then ended[RESULT_KIND] = 0 end
        bytes = bytes + #row
        rows[#rows + 1] = { from, ended }
      end
    end
  end
  return { rows, from }
end
function lists.scheduled()
  local rows = page_numbered(SCHEDULE, SCHEDULEZ, A.from, A.limit)
  for at = 2, #rows, 2 do rows[at] = unpacked(rows[at]) end
  return rows
end
function lists.urgent()
  return call('ZRANGEBYSCORE', URGENT, '(' .. text(A.from), '+inf', 'LIMIT', 0, min(A.limit, PAGE_MAX))
end
function lists.counts(shard)
  know_all_seats(shard)
  local seats = {}
  for at, found in ipairs(all_seats()) do
    local k, seat = found.k, found.seat
    seats[at] = { found.processor, call('HLEN', k.lane), call('HLEN', k.dead), seat.emitted - seat.forwarded, call('HLEN', k.request) }
  end
  return { call('HLEN', SCHEDULE), seats, shard.adoptions, shard.expired, shard.dedup_evicted or 0 }
end
function lists.events(shard)
  local rows, bytes, from, limit = {}, 0, max(A.from, shard.trimmed), min(A.limit, PAGE_MAX)
  while #rows < 2 * limit and bytes < PAGE_BYTES_MAX do
    local found = call('XRANGE', LOG, '(' .. text(from), '+', 'COUNT', min(16, limit - #rows / 2))
    if #found == 0 then break end
    for _, entry in ipairs(found) do
      from = tonumber(string.match(entry[1], '^%d+'))
      bytes = bytes + #entry[2][2]
      rows[#rows + 1] = from
      rows[#rows + 1] = entry[2][2]
    end
  end
  return rows
end
function lists.objects() return page_named(OBJECT, OBJECTZ, A.from, A.limit) end
function lists.dedup()
  local rows = page_named(DEDUP, DEDUP_NAMES, A.from, A.limit)
  for at = 2, #rows, 2 do rows[at] = unpacked(rows[at]) end
  return rows
end
function lists.sources() return page_named(SOURCE, SOURCEZ, A.from, A.limit) end
function lists.tickets()
  local rows = page_numbered(TICKET, TICKETZ, A.from, A.limit)
  for at = 2, #rows, 2 do rows[at] = unpacked(rows[at]) end
  return rows
end

local function main()
  local shard = load_shard()
  local k, seat
  if A.processor then
    k = seat_keys(1)
    seat = load_seat(k)
  end
  return { 'ok', lists[A.list](shard, k, seat) }
end
