-- Seize: a seat gets a new owner, and every older fence ends.
local function main()
  local shard = load_shard()
  learned(shard, A.inc)
  local k = seat_keys(1)
  local seat = load_seat(k)
  local is_repeat = seat.term > 0 and seat.nonce == A.nonce and not seat.last_commit
  if not (is_repeat and seat.adoptions == shard.adoptions) then
    local expected
    if A.expect then expected = seat.term > 0 and A.expect[1] == seat.term and A.expect[2] == seat.nonce
    else expected = seat.term == 0 end
    if not expected then fail({ 'fenced', seat.term }) end
    seat.term = max(seat.term + 1, calendar, shard.first_term)
    seat.nonce, seat.adoptions, seat.node = A.nonce, shard.adoptions, A.node
    seat.was_clean, seat.clean, seat.last_commit = seat.clean, false, false
    -- Ids that an adoption jumped over are nothing to wait for, and no word below them is looked at again.
    local before = floor(seat.floor / 64)
    seat.floor = next_id(shard, seat.floor) - 1
    if before < floor(seat.floor / 64) then call('HDEL', k.window, before) end
    save_seat(k, seat)
  end
  return { 'ok', seat_view(k, seat), shard.head, shard.gaps }
end
