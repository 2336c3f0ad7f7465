-- Read: a page of events, with the states of its keys if asked for.
local function main()
  local shard = load_shard()
  local k, seat = nil, nil
  if A.processor then
    k = seat_keys(1)
    seat = load_seat(k)
  end
  local limit, bytes_max = min(A.limit, PAGE_MAX), min(A.bytes, PAGE_BYTES_MAX)
  local below
  if A.ids then below = A.ids[1] and A.ids[1] > 0 and A.ids[1] <= shard.trimmed else below = A.from < shard.trimmed end
  if below then fail({ 'trimmed', next_id(shard, shard.trimmed) }) end

  -- Entries are the id and the event, or the id and what is known of one that a newer one took the place of.
  local entries, count, bytes, states, state_bytes, seen, full = {}, 0, 0, {}, 0, {}, limit == 0
  local with_states = seat and A.states
  local look_inside = shard.mode == 1 or with_states
  local function add(id, value)
    bytes = bytes + event_size(value)
    if count > 0 and bytes > bytes_max then
      full = true
      return
    end
    local entry = value
    if look_inside then
      local parts = event_parts(value)
      local key = parts.key
      local tail = shard.mode == 1 and key and call('HGET', TAIL, key)
      local winner = tail and struct.unpack('>I6', tail) or 0
      if winner > tonumber(string.match(id, '^%d+')) then entry = { winner, key, parts.job or false } end
      if with_states and key and not seen[key] then
        local row = call('HGET', k.state, key)
        -- A version is not of the state's size.
        state_bytes = state_bytes + (row and #row - 6 or 0)
        if count > 0 and state_bytes > bytes_max then
          full = true
          return
        end
        seen[key] = true
        if row then states[#states + 1] = key; states[#states + 1] = row end
      end
    end
    count = count + 1
    entries[2 * count - 1], entries[2 * count] = id, entry
    full = count >= limit
  end
  if A.ids then
    for _, id in ipairs(A.ids) do
      if full then break end
      local value = id > 0 and id <= shard.head and find_event(id)
      if value then add(text(id), value) end
    end
  else
    -- In pieces, so that a page of large events is not read as a page of small ones would be.
    local from, piece = text(A.from), 16
    while not full do
      local found = call('XRANGE', LOG, '(' .. from, '+', 'COUNT', min(piece, limit - count))
      if #found == 0 then break end
      for at = 1, #found do
        add(found[at][1], found[at][2][2])
        if full then break end
      end
      from = found[#found][1]
      piece = max(1, min(1000, floor((bytes_max - bytes) / (bytes / count + 1)) + 1))
    end
  end
  return { 'ok', entries, shard.head, seat and seat.request_no or 0, next_due(), states }
end
