-- Promote: drafts that are due join their lanes, those due for longest first.
local function main()
  local shard = load_shard()
  learned(shard, CURRENT)
  unsealed(shard)
  local limit = min(A.limit, PAGE_MAX)
  local places = first_due(limit + 1)
  local drafts, rows, bytes = {}, {}, 0
  for at = 1, min(limit, #places) do
    if places[at].age < 0 or bytes > PAGE_BYTES_MAX then break end
    local row = call('HGET', SCHEDULE, places[at].ticket)
    bytes = bytes + #row
    rows[at] = unpacked(row)
    drafts[at] = rows[at][4]
  end
  local following = places[#rows + 1]
  begin_joins(shard)
  look_up_tails(drafts)
  local moved = {}
  for at, row in ipairs(rows) do
    local draft, ticket = row[4], places[at].ticket
    local wish = draft[D_JOB]
    local job = wish and job_id(row[3], 1, ticket)
    local id = offer(draft, job)
    moved[at] = { id = id, newer = joins.ids[draft[D_KEY]], job = job, accepted_at = row[3], wish = wish, dedup = draft[D_DEDUP], key = draft[D_KEY] }
  end
  for at, found in ipairs(moved) do
    local ticket = places[at].ticket
    leave_schedule(ticket, places[at].clock)
    if found.id and found.job then
      put_numbered(TICKET, TICKETZ, ticket, pack({ 1, found.id }))
    elseif found.job then
      local reason = 'event ' .. text(found.newer) .. ' is newer'
      local ended = { 2, 3, reason, wall, found.wish[2], after(wall, found.wish[2]), found.accepted_at }
      put_numbered(TICKET, TICKETZ, ticket, pack(ended))
      tell('j' .. found.job)
    end
    if found.id and found.dedup then
      local name = dedup_name(found.key, found.dedup[1])
      local row = call('HGET', DEDUP, name)
      row = row and unpacked(row)
      -- The entry may have gone by number and come again for another draft.
      if row and row[DD_RECEIPT][1] == 's' and row[DD_RECEIPT][2] == ticket then
        row[DD_UNTIL] = max(row[DD_UNTIL], after(wall, found.dedup[3]))
        row[DD_EVENT] = found.id
        put_dedup(name, row)
      end
    end
  end
  write_joins()
  if #joins.events > 0 then
    save_shard(shard)
    tell(A.topic)
  end
  return { 'ok', #rows, following and max(-following.age, 0) or -1 }
end
