-- Append: the checks in the order of the contract, then all changes at once.
local EVICTED_PER_CALL = 16

-- What of the dedup ids must go so that no more than the stream's bound are remembered.
-- Answers how many go before their time.
local function make_room(shard, new, gone)
  local count = call('HLEN', DEDUP) - #gone + #new
  -- A bound that was lowered is reached over several calls, so that none has to remove very many.
  local over = min(max(count - shard.dedup_max, 0), #new + EVICTED_PER_CALL)
  if over == 0 then return 0 end
  local ended, is_gone = #gone, {}
  for _, name in ipairs(gone) do is_gone[name] = true end
  local early = 0
  local oldest = call('ZRANGE', DEDUPZ, 0, over + ended - 1, 'WITHSCORES')
  for at = 1, #oldest, 2 do
    local name = oldest[at]
    if #gone - ended < over and not is_gone[name] then
      gone[#gone + 1] = name
      if tonumber(oldest[at + 1]) >= calendar then early = early + 1 end
    end
  end
  -- A bound below what one call brings: even of these only the last stay.
  local dropped = min(over - (#gone - ended), #new)
  for _ = 1, dropped do table.remove(new, 1) end
  return early + dropped
end

-- Events up to the floor that wait in sidings; counted only when there may be more of them than there is room for.
local function sided_below(shard, found, at_floor, room)
  local first = call('ZRANGE', found.k.sidedz, 0, 0)[1]
  if not first then return 0 end
  local at_most = count_ids(shard, tonumber(first) - 1, at_floor)
  if at_most <= room then return at_most end
  return #call('ZRANGEBYSCORE', found.k.sidedz, '-inf', at_floor, 'LIMIT', 0, min(room + 1, PAGE_MAX))
end
local function check_pending(shard, joining)
  local limit = shard.max_pending
  if not limit or joining == 0 then return end
  if joining > limit then
    refuse('events of the call in one partition', text(joining),
      'at most ' .. text(limit) .. ", what each partition may have waiting by the stream's max_pending")
  end
  know_all_seats(shard)
  local seats = all_seats()
  local pending = #seats == 0 and count_ids(shard, shard.trimmed, shard.head) or 0
  for _, found in ipairs(seats) do
    local at_floor = max(found.seat.floor, shard.trimmed)
    local above = count_ids(shard, at_floor, shard.head)
    pending = max(pending, above + sided_below(shard, found, at_floor, max(limit - above - joining, 0)))
  end
  if pending + joining > limit then fail({ 'pending', pending, limit }) end
end

local function main()
  local shard = load_shard()
  learned(shard, A.inc)
  unsealed(shard)
  if A.layout ~= shard.layout then fail({ 'moved', shard.stream_layout }) end
  local source, seen_term, seen_number = A.source, A.term, 0
  local source_row = source and call('HGET', SOURCE, source)
  if source_row then
    seen_term, seen_number = struct.unpack('>I8I8', source_row)
    if A.term < seen_term then fail({ 'conflict', -1, 'term', seen_term }) end
  end
  local registered = {}
  for _, processor in ipairs(shard.processors) do registered[processor] = true end
  begin_joins(shard)
  local first_number = source and A.first_number
  -- What is repeated goes the long way.
  local is_plain = A.keys and shard.mode ~= 1 and not A.object and (not first_number or first_number > seen_number)
  local scheduled, waiting, receipts, new, gone, known = shard.scheduled, {}, {}, {}, {}, {}
  local object, number, write = false, seen_number, write_joins

  -- A remembered draft under this name, in this call or before.
  local function remembered(name)
    if known[name] then return known[name] end
    local row = call('HGET', DEDUP, name)
    if not row then return nil end
    row = unpacked(row)
    if row[DD_UNTIL] >= expiry or is_waiting(row) then return row end
    gone[#gone + 1] = name
    known[name] = false
    return nil
  end

  local function place(index, draft)
    local key, delay, wish, dedup = draft[D_KEY], draft[D_DELAY], draft[D_JOB], draft[D_DEDUP]
    if shard.mode == 1 and not key then refuse('key', 'absent', 'set in a stream of mode latest') end
    if wish and not registered[wish[1]] then
      refuse('responder', 'processor ' .. wish[1], 'a processor of this stream')
    end
    if delay and delay[1] == 1 and delay[2] == 1 and delay[3] > wall + A.hold_max then
      refuse('run_at', text(delay[3]), 'at most ' .. text(A.hold_max / 1000000) .. 's from now with delay_mode hold')
    end
    local own_number = first_number and first_number + index or draft[D_NUMBER]
    if source and own_number then
      if own_number <= number then return { 'd', false } end
      number = own_number
    end
    local name = dedup and dedup_name(key, dedup[1])
    if dedup then
      local row = known[name] ~= false and remembered(name)
      if row then
        if row[DD_BODY] ~= dedup[2] then fail({ 'conflict', index, 'body', row[DD_EVENT] }) end
        return { 'd', row[DD_RECEIPT] }
      end
    end
    if draft[D_PREV] and key then
      local actual = joins.ids[key] or 0
      if actual ~= draft[D_PREV] then fail({ 'conflict', index, 'prev', actual }) end
    end
    if A.object and key and not object then
      local row = call('HGET', OBJECT, key)
      local version = row and struct.unpack('>I6', row) or 0
      if A.object[1] >= 0 and A.object[1] ~= version then fail({ 'conflict', index, 'object', version }) end
      object = { key, version + 1, A.object[2] }
    end
    local receipt, from = nil, wall
    if delay and delay[1] == 0 then
      scheduled = scheduled + 1
      if scheduled > NUMBER_MAX then fail({ 'used_up' }) end
      local clock, due = due_of(delay)
      local due_at = clock == 0 and after(wall, delay[3]) or delay[3]
      waiting[#waiting + 1] = { scheduled, clock, due, draft }
      receipt = { 's', scheduled, clock, due, due_at, wish and job_id(calendar, 1, scheduled) or false }
      from = max(due_at, wall)
    else
      local id, prev, seq, job = offer(draft)
      if not id then return { 't', joins.ids[key], (joins.more[key] or PLAIN_TAIL).generation or ZERO8 } end
      receipt = { 'n', id, prev, seq, job }
    end
    if dedup then
      local row = { dedup[2], after(from, dedup[3]), receipt[1] == 'n' and receipt[2] or 0, receipt }
      known[name] = row
      new[#new + 1] = { name, row }
    end
    return receipt
  end

  if is_plain then
    receipts, write = offer_plain()
    number = first_number and first_number + #A.rests - 1 or number
  else
    local drafts = A.drafts or drafts_of_plain()
    look_up_tails(drafts)
    for index, draft in ipairs(drafts) do receipts[index] = place(index - 1, draft) end
  end
  if not A.from_outbox then check_pending(shard, #joins.events) end

  local evicted = (#new > 0 or #gone > 0) and make_room(shard, new, gone) or 0
  if evicted > 0 then shard.dedup_evicted = (shard.dedup_evicted or 0) + evicted end
  local accepted = #joins.events > 0 or #waiting > 0
  write()
  for _, found in ipairs(waiting) do enter_schedule(found[1], found[2], found[3], calendar, found[4]) end
  shard.scheduled = scheduled
  for _, name in ipairs(gone) do drop_dedup(name) end
  for _, found in ipairs(new) do put_dedup(found[1], found[2]) end
  if source and (not source_row or number ~= seen_number or A.term ~= seen_term) then
    put_named(SOURCE, SOURCEZ, source, struct.pack('>I8I8I8', A.term, number, wall))
  end
  -- What is stale changes nothing, so neither does what came with it.
  if object and accepted then
    put_named(OBJECT, OBJECTZ, object[1], struct.pack('>I6B', object[2], object[3] and 1 or 0) .. (object[3] or ''))
  end
  if accepted then
    save_shard(shard)
    tell(A.topic)
  end
  return { 'ok', receipts, object and accepted and object[2] or 0, evicted }
end
