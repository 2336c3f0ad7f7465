-- Plain drafts: a key and a body each, in a stream of mode queue. Most calls bring only these, and every event counts; so nothing is done for
-- them but the chain, by places in lists. They come as the keys, each once, and for each draft the place of its key and what the log has of
-- key and body.
local PLAIN = string.char(1, KEY)

-- The same as drafts of any kind.
local function drafts_of_plain()
  local drafts = {}
  for at, rest in ipairs(A.rests) do
    local key = A.keys[A.lanes[at]]
    drafts[at] = { key, string.sub(rest, 3 + #key) }
  end
  return drafts
end

-- Gives each its place: answers the id before the first, and of each the event before it in its lane and its number there; and what writes them.
local function offer_plain()
  local keys, lanes, rests, events, stamp = A.keys, A.lanes, A.rests, joins.events, joins.stamp
  local rows, ids, seqs, names, chains = call('HMGET', TAIL, unpack(keys)), {}, {}, {}, {}
  local before, pack_numbers = joins.head, struct.pack
  if before + #rests > NUMBER_MAX then fail({ 'used_up' }) end
  for lane, key in ipairs(keys) do
    local row = rows[lane]
    if row then
      ids[lane], seqs[lane] = struct.unpack('>I6I6', row)
    else
      ids[lane], seqs[lane] = 0, 0
      names[#names + 1] = 0
      names[#names + 1] = key
    end
  end
  for at, rest in ipairs(rests) do
    local lane = lanes[at]
    local seq = seqs[lane] + 1
    local chain = pack_numbers('>I6I6', ids[lane], seq)
    ids[lane], seqs[lane], chains[at] = before + at, seq, chain
    events[at] = PLAIN .. chain .. stamp .. rest
  end
  joins.head = before + #rests
  local function write()
    write_events()
    local tails = {}
    for lane, key in ipairs(keys) do
      tails[2 * lane - 1] = key
      tails[2 * lane] = pack_numbers('>I6I6B', ids[lane], seqs[lane], 0)
    end
    write_tails(tails, names)
  end
  return pack_numbers('>I6', before) .. table.concat(chains), write
end
