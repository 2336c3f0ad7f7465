-- Commit: the fence, then everything an owner may settle in one step (contract 1.8). What a commit says of the life
-- that it ends by a reset counts before the next life begins.
local function main()
  local shard = load_shard()
  local k = seat_keys(1)
  local seat = load_seat(k)
  local fence = A.fence
  local function answer()
    return { 'ok', seat.term, seat.nonce, seat.version, seat.adoptions, seat.floor, seat.request_no, seat.emitted }
  end
  local same_grant = seat.term == fence[1] and seat.nonce == fence[2] and seat.adoptions == fence[4] and shard.adoptions == fence[4]
  if same_grant and seat.version > 0 and seat.version - 1 == fence[3] and seat.last_commit == A.id then return answer() end
  -- A store that came back from an older state answers nobody until its shards are adopted.
  if seat.term == 0 or not same_grant or seat.version ~= fence[3] or shard.inc ~= CURRENT then fail({ 'fenced', seat.term }) end

  -- The window as the commit would leave it.
  local words = {}
  local function stored_word(number)
    if words[number] == nil then words[number] = call('HGET', k.window, number) end
    return words[number]
  end
  local marked = {}
  for _, found in ipairs(A.passed) do marked[found[1]] = found[2] end
  local function was_passed(id) return id <= seat.floor or has_bit(stored_word(floor(id / 64)), id % 64) end
  local function is_marked(id) return was_passed(id) or has_bit(marked[floor(id / 64)], id % 64) end
  local lane_of = {}
  local function sided(id)
    if lane_of[id] == nil then lane_of[id] = call('HGET', k.sided, id) end
    return lane_of[id]
  end

  if A.last > 0 then
    if A.last > shard.head then refuse('passed', text(A.last), 'at most the last id ' .. text(shard.head)) end
    local ceiling = seat.floor + WINDOW_IDS
    for _, gap in ipairs(shard.gaps) do
      if gap[2] > seat.floor and gap[1] <= ceiling then ceiling = ceiling + gap[2] - max(gap[1], seat.floor + 1) + 1 end
    end
    if A.last > ceiling then refuse('passed', text(A.last), 'at most ' .. text(ceiling) .. ", the window's end") end
  end
  for _, ending in ipairs(A.endings) do
    if not is_marked(ending[1]) and not sided(ending[1]) then
      refuse('endings', 'event ' .. text(ending[1]), 'another end than done, of an event that is passed or in a siding')
    end
  end

  -- Ends of jobs: an end that is there already stays, and the later one is passed over in silence.
  local leaving = {}
  for _, change in ipairs(A.lanes) do
    for _, id in ipairs(change[4]) do leaving[id] = true end
  end
  local ends, ending_now = {}, {}
  local function job_refused(id, limit) refuse('jobs', 'event ' .. text(id), limit) end
  for _, job in ipairs(A.jobs) do
    local id, kind = job[1], job[3]
    if not is_marked(id) and not sided(id) then job_refused(id, 'of an event that is passed with this commit, or in a siding') end
    if kind == 2 then
      local bytes = 0
      for index = 0, job[5] - 1 do
        local length = call('HSTRLEN', CHUNK, chunk_name(id, job[4], index))
        if length == 0 then
          refuse('result', job[5] .. ' chunks', 'stashed chunks; chunk ' .. index .. ' of event ' .. text(id) .. ' is not there')
        end
        bytes = bytes + length
        if bytes > A.result_max then refuse('result bytes', text(bytes), 'at most ' .. text(A.result_max)) end
      end
    end
    local event = find_event(id)
    local mark = event and event_parts(event)
    if not mark or not mark.job or mark.responder ~= A.processor then job_refused(id, 'of a job that this processor answers') end
    local was_open = not was_passed(id)
    -- In its first life a seat ends a job when it passes the event, so an open event has no end yet, unless it was run
    -- ahead of the window and came back into its siding.
    local ahead = was_open and (leaving[id] or not is_marked(id))
    local has_end = (not was_open or ahead or seat.life > 0) and call('HEXISTS', ENDS, id) == 1
    if not has_end then
      if not was_open and not sided(id) then job_refused(id, 'of an event that was open before this commit') end
      if not ending_now[id] then
        ending_now[id] = true
        ends[#ends + 1] = { job, string.sub(mark.job, 1, 16) }
      end
    end
  end

  -- Changes of lanes.
  local named, moving, before = {}, {}, {}
  local function lane_refused(field, lane, limit)
    local shown = string.sub(lane, 1, 1) == 'k' and string.sub(lane, 2) or '#' .. text(struct.unpack('>I8', lane, 2))
    refuse(field, 'lane ' .. shown, limit)
  end
  for at, change in ipairs(A.lanes) do
    local lane, record, side, unside = change[1], change[2], change[3], change[4]
    if named[lane] then lane_refused('lanes', lane, 'named once in a commit') end
    named[lane] = true
    local ahead = record and record[L_AHEAD] or 0
    if ahead > shard.head then lane_refused('ahead', lane, 'at most the last id ' .. text(shard.head) .. '; ' .. text(ahead) .. ' is beyond') end
    for _, id in ipairs(side) do
      if not is_marked(id) and id > ahead then
        lane_refused('side', lane, 'with ids that are passed or not beyond its `ahead`; ' .. text(id) .. ' is neither')
      end
      if moving[id] or (sided(id) and sided(id) ~= lane) then lane_refused('side', lane, 'the one lane that sides event ' .. text(id)) end
      moving[id] = true
    end
    local goes = {}
    for _, id in ipairs(unside) do
      if sided(id) ~= lane then lane_refused('unside', lane, 'with ids in its siding; ' .. text(id) .. ' is not') end
      goes[id] = true
    end
    if not record then
      local stays = #side > 0
      for _, id in ipairs(siding_of(k, lane, min(#unside, WINDOW_IDS) + 1)) do stays = stays or not goes[id] end
      if stays then lane_refused('record', lane, 'kept while its siding is not empty') end
    end
    before[at] = find_lane(k, lane)
    -- What ended ahead of the window is known by its lane's record alone until the floor is beyond it.
    local kept = before[at] and before[at][L_AHEAD] or 0
    if kept > seat.floor and ahead < kept then
      lane_refused('ahead', lane, 'kept at ' .. text(kept) .. ' or more until the floor, now ' .. text(seat.floor) .. ', is there')
    end
  end

  -- Counters may only grow, up to what there is, and by a page at a time.
  local function counter(field, value, from, to)
    to = min(to, from + PAGE_MAX)
    if value < from or value > to then refuse(field, text(value), text(from) .. ' to ' .. text(to)) end
    return value
  end
  local forwarded = counter('forwarded', A.forwarded or seat.forwarded, seat.forwarded, seat.emitted)
  local applied_to = counter('requests_applied', A.requests_applied or seat.requests_applied, seat.requests_applied, seat.request_no)
  local applied, answered = {}, {}
  for _, found in ipairs(A.answers) do
    local row = call('HGET', k.request, found[1])
    if not row or answered[found[1]] then refuse('answers', text(found[1]), 'requests that wait, each once') end
    answered[found[1]] = true
    applied[#applied + 1] = { found[1], string.sub(row, 1, 16), found[2] }
  end
  for number = seat.requests_applied + 1, applied_to do
    -- One that is not there any more was answered before its turn.
    local row = not answered[number] and call('HGET', k.request, number)
    if row then applied[#applied + 1] = { number, string.sub(row, 1, 16), '' } end
  end
  local begin = A.reset and start_floor(shard, A.reset)

  -- All is checked; from here on everything is written.
  for _, write in ipairs(A.states) do
    local key, value = write[1], write[2]
    if value then
      local row = call('HGET', k.state, key)
      put_named(k.state, k.statez, key, struct.pack('>I6', (row and struct.unpack('>I6', row) or 0) + 1) .. value)
    else
      -- A removed state leaves nothing behind, so that idle lanes cost nothing.
      drop_named(k.state, k.statez, key)
    end
  end
  for _, id in ipairs(A.revived) do drop_numbered(k.dead, k.deadz, id) end
  for _, dead in ipairs(A.dead) do put_numbered(k.dead, k.deadz, dead[1], struct.pack('>I8', wall) .. dead[2]) end
  local lives = struct.pack('>I4I4', seat.life, seat.adoptions)
  for at, emit in ipairs(A.emits) do call('HSET', k.outbox, seat.emitted + at, lives .. emit) end
  for number = seat.forwarded + 1, forwarded do call('HDEL', k.outbox, number) end
  for _, found in ipairs(applied) do
    local until_then = after(wall, A.token_keep)
    drop_numbered(k.request, k.requestz, found[1])
    put_named(k.token, k.tokenz, found[2], pack({ found[1], until_then, found[3] }))
    call('ZADD', k.token_life, until_then, found[2])
  end
  for _, found in ipairs(ends) do
    local id, keep, kind, result, chunks, rest = unpack(found[1])
    local until_then = after(wall, keep)
    put_numbered(ENDS, ENDSZ, id, pack({ until_then, until_then, wall, kind, result, chunks, rest }))
    call('ZADD', ENDS_LIFE, until_then, id)
    for index = 0, chunks - 1 do call('ZREM', CHUNKZ, chunk_name(id, result, index)) end
    tell('j' .. found[2])
  end
  seat.version, seat.last_commit, seat.clean = seat.version + 1, A.id, A.clean
  seat.emitted, seat.forwarded, seat.requests_applied = seat.emitted + #A.emits, forwarded, applied_to
  seat.status, seat.note = A.status or seat.status, A.note or seat.note
  if A.reset then
    forget_life(k)
    call('UNLINK', k.window)
    if A.reset[3] then call('UNLINK', k.state, k.statez) end
    seat.life, seat.floor = seat.life + 1, begin
    save_seat(k, seat)
    return answer()
  end
  for _, id in ipairs(A.revived) do
    -- A dead letter that comes back into its lane has not ended after all.
    if moving[id] then drop_numbered(k.ending, k.endingz, id) end
  end
  for _, ending in ipairs(A.endings) do put_numbered(k.ending, k.endingz, ending[1], ending[2]) end
  for at, change in ipairs(A.lanes) do
    for _, id in ipairs(change[4]) do
      call('ZREM', k.siding, siding_name(change[1], id))
      drop_numbered(k.sided, k.sidedz, id)
    end
    for _, id in ipairs(change[3]) do put_sided(k, change[1], id) end
    put_lane(k, change[1], before[at], change[2])
  end

  -- The floor follows from what is passed; nobody can set it.
  local changed, first_word = {}, floor(seat.floor / 64)
  for number, bits in pairs(marked) do
    if number >= first_word then
      local stored = stored_word(number)
      if stored and bits ~= FULL then
        local high, low = struct.unpack('>I4I4', stored)
        local more_high, more_low = struct.unpack('>I4I4', bits)
        bits = struct.pack('>I4I4', bit.bor(high, more_high) % 4294967296, bit.bor(low, more_low) % 4294967296)
      end
      words[number] = bits
      changed[number] = true
    end
  end
  local at, stands = seat.floor, false
  while not stands do
    local following = at + 1
    local gap = in_gap(shard, following)
    if gap then
      at = gap[2]
    else
      local word = stored_word(floor(following / 64))
      local run = word and ones_from(word, following % 64) or 0
      local stop = at + run
      for _, other in ipairs(shard.gaps) do
        if other[1] > following and other[1] <= stop then stop = other[1] - 1 end
      end
      stands = run == 0
      at = stop
    end
  end
  seat.floor = at
  local last_word, rows, over = floor(at / 64), {}, {}
  for number, word in pairs(words) do
    if number < last_word then
      if word then over[#over + 1] = number end
    elseif changed[number] then
      rows[#rows + 1] = number
      rows[#rows + 1] = word
    end
  end
  hset(k.window, rows)
  each_piece(over, 4000, function(...) call('HDEL', k.window, ...) end)
  save_seat(k, seat)
  return answer()
end
