-- Stash: one chunk of a large result, invisible until a commit names it.
local function main()
  local shard = load_shard()
  if A.id == 0 or A.id > shard.head then refuse('id', text(A.id), '1 to ' .. text(shard.head)) end
  local name = chunk_name(A.id, A.nonce, A.index)
  call('HSET', CHUNK, name, A.bytes)
  -- One that a living end consists of must not go by time.
  local ended = find_end(A.id)
  if ended and ended[RESULT_KIND] == 2 and ended[RESULT] == A.nonce then return { 'ok' } end
  call('ZADD', CHUNKZ, after(wall, A.keep), name)
  return { 'ok' }
end
