-- Request: numbers a wish and stores it, once per token.
-- A request row is the token and the wish; a token row: number, until (0 while it waits), answer.
local function main()
  imported(load_shard())
  local k = seat_keys(1)
  local seat = load_seat(k)
  local row = call('HGET', k.token, A.token)
  local token = row and unpacked(row)
  if token and (token[2] == 0 or token[2] >= expiry) then return { 'ok', token[1], true } end
  seat.request_no = seat.request_no + 1
  put_numbered(k.request, k.requestz, seat.request_no, A.token .. A.op)
  put_named(k.token, k.tokenz, A.token, pack({ seat.request_no, 0, '' }))
  call('ZREM', k.token_life, A.token)
  save_seat(k, seat)
  tell(A.topic)
  return { 'ok', seat.request_no, false }
end
