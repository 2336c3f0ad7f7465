if jumped then return { 'clock', jumped } end
local done, answer = pcall(main)
if done then return answer end
if type(answer) == 'table' and answer.answer then return answer.answer end
error(answer)
