-- Lanes: records of lanes with their state and the beginning of their siding.
local function main()
  load_shard()
  local k = seat_keys(1)
  load_seat(k)
  local views = {}
  local function view(name, record)
    local state = A.states and string.sub(name, 1, 1) == 'k' and call('HGET', k.state, string.sub(name, 2))
    if not record and not state then return end
    views[#views + 1] = { name, record and record[L_RECORD] or false, state or false, siding_of(k, name, min(A.siding, PAGE_MAX)) }
  end
  if A.names then
    for _, name in ipairs(A.names) do view(name, find_lane(k, name)) end
  elseif A.within then
    local found = {}
    for clock = 0, 1 do
      local until_then = (clock == 0 and steady or dates) + A.within
      local rows = call('ZRANGEBYSCORE', due_lanes(k, clock), '-inf', until_then, 'WITHSCORES', 'LIMIT', 0, A.limit)
      for at = 1, #rows, 2 do found[#found + 1] = { rows[at], -age(clock, tonumber(rows[at + 1])), #found } end
    end
    table.sort(found, function(a, b)
      if a[2] ~= b[2] then return a[2] < b[2] end
      return a[3] < b[3]
    end)
    for at = 1, min(A.limit, #found) do view(found[at][1], find_lane(k, found[at][1])) end
  elseif A.kind then
    local kind = string.char(A.kind)
    local from = A.from and '(' .. kind .. A.from or '[' .. kind
    for _, name in ipairs(call('ZRANGEBYLEX', k.kind, from, '(' .. string.char(A.kind + 1), 'LIMIT', 0, A.limit)) do
      view(string.sub(name, 2), find_lane(k, string.sub(name, 2)))
    end
  else
    local from = A.from and '(' .. A.from or '-'
    for _, name in ipairs(call('ZRANGEBYLEX', k.lanez, from, '+', 'LIMIT', 0, A.limit)) do view(name, find_lane(k, name)) end
  end
  return { 'ok', views }
end
