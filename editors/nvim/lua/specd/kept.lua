--- What the last rewrite of a buffer has put into it: hunks, kept with the text as it changes, so that they are found,
--- shown and taken back also when the language server that wrote them is gone.

local M = {}

local api = vim.api

---@class specd.Hunk
---@field job string
---@field number integer
---@field first integer 0-based line
---@field last integer half open
---@field old string[] the lines that were there
---@field new? string[] the lines that are there, none for a deletion; nil if they were changed before they were told of
---@field is_lost? boolean what was on both sides of a deletion is gone

---@class specd.Kept
---@field job string
---@field client? integer who can take it back; nil once that one has gone, or knows the buffer no more
---@field hunks specd.Hunk[]
---@field jobs string[] all that were heard of, the latest last

---@type table<integer,specd.Kept> by buffer
local buffers = {}

--- Keep a hunk. One of a later job has those before forgotten; one of an earlier job counts only after the later one's
--- are out: a server tells of it too where the later job has written the same.
---@param bufnr integer
---@param client integer
---@param hunk specd.Hunk
---@return boolean whether it counts
function M.put(bufnr, client, hunk)
  local kept = buffers[bufnr] or { job = hunk.job, hunks = {}, jobs = {} }
  buffers[bufnr] = kept
  if not vim.list_contains(kept.jobs, hunk.job) then
    table.insert(kept.jobs, hunk.job)
  end
  if kept.job ~= hunk.job then
    local rank = {} ---@type table<string,integer>
    for at, job in ipairs(kept.jobs) do
      rank[job] = at
    end
    if rank[hunk.job] < rank[kept.job] and M.count(bufnr, kept.job) > 0 then
      return false
    end
    kept.job, kept.hunks = hunk.job, {}
  end
  kept.client = client
  table.insert(kept.hunks, hunk)
  return true
end

--- The hunk is out of the buffer again.
---@param bufnr integer
---@param job string
---@param number integer
function M.remove(bufnr, job, number)
  local kept = buffers[bufnr]
  if kept and kept.job == job then
    kept.hunks = vim.tbl_filter(function(one)
      return one.number ~= number
    end, kept.hunks)
  end
end

--- Its language server knows the buffer no more.
---@param bufnr integer
---@param client integer
function M.orphan(bufnr, client)
  if buffers[bufnr] and buffers[bufnr].client == client then
    buffers[bufnr].client = nil
  end
end

---@param bufnr integer
function M.forget(bufnr)
  buffers[bufnr] = nil
end

---@param bufnr integer
---@return boolean
function M.has_any(bufnr)
  return buffers[bufnr] ~= nil and #buffers[bufnr].hunks > 0
end

--- The job whose hunks are kept; nil if there are none.
---@param bufnr integer
---@return string?
function M.job(bufnr)
  return M.has_any(bufnr) and buffers[bufnr].job or nil
end

--- Whether hunks are kept that `client` cannot take back.
---@param bufnr integer
---@param client? vim.lsp.Client
---@return boolean
function M.is_ours(bufnr, client)
  return M.has_any(bufnr) and (not client or buffers[bufnr].client ~= client.id)
end

---@param bufnr integer
---@param first integer
---@param last integer
---@param lines? string[]
local function is_there(bufnr, first, last, lines)
  return lines ~= nil
    and last - first == #lines
    and vim.deep_equal(api.nvim_buf_get_lines(bufnr, first, last, false), lines)
end

--- What became of a hunk: 'in' as it was written, 'out' where its old lines stand, 'gone' where nothing does.
---@param bufnr integer
---@param hunk specd.Hunk
---@return 'in'|'out'|'gone'|'changed'
function M.state(bufnr, hunk)
  if hunk.is_lost then
    return 'gone'
  elseif is_there(bufnr, hunk.first, hunk.last, hunk.new) then
    return 'in'
  elseif is_there(bufnr, hunk.first, hunk.last, hunk.old) then
    return 'out'
  end
  return hunk.first == hunk.last and 'gone' or 'changed'
end

---@param bufnr integer
---@param hunk specd.Hunk
---@param change specd.Change
local function move(bufnr, hunk, change)
  local more = change.new_last - change.last
  if hunk.first == hunk.last and change.first == hunk.first and change.last == hunk.first then
    -- Lines come where the hunk has none: an undo, a redo, or the user's own above it.
    local first, last = change.first, change.new_last
    if is_there(bufnr, first, last, hunk.old) or is_there(bufnr, first, last, hunk.new) then
      hunk.last = last
      return
    elseif last == api.nvim_buf_line_count(bufnr) then
      return -- behind what stood at the end
    end
  end
  if change.last <= hunk.first then
    hunk.first, hunk.last = hunk.first + more, hunk.last + more
  elseif change.first < hunk.last and more ~= 0 then -- lines that are as many as before are taken for the same ones
    hunk.is_lost = hunk.is_lost or hunk.first == hunk.last
    hunk.first, hunk.last = math.min(hunk.first, change.first), math.max(hunk.last, change.last) + more
  end
end

--- The buffer has changed.
---@param bufnr integer
---@param change specd.Change
function M.follow(bufnr, change)
  for _, hunk in ipairs(buffers[bufnr] and buffers[bufnr].hunks or {}) do
    move(bufnr, hunk, change)
  end
end

--- How many hunks of a job are in the buffer, as they were written or changed since, and of how many that are known.
---@param bufnr integer
---@param job? string
---@return integer, integer
function M.count(bufnr, job)
  local kept = buffers[bufnr]
  if not kept or kept.job ~= job then
    return 0, 0
  end
  local left = vim.tbl_filter(function(hunk)
    return vim.list_contains({ 'in', 'changed' }, M.state(bufnr, hunk))
  end, kept.hunks)
  return #left, #kept.hunks
end

--- Put the old lines of a hunk back, which is as it was written.
---@param bufnr integer
---@param hunk specd.Hunk
function M.put_back(bufnr, hunk)
  api.nvim_buf_set_lines(bufnr, hunk.first, hunk.last, false, hunk.old)
end

---@param bufnr integer
---@param hunk specd.Hunk
---@return string lines as a user counts them
local function place_of(bufnr, hunk)
  local first = math.min(hunk.first + 1, api.nvim_buf_line_count(bufnr))
  return hunk.last - hunk.first > 1 and ('%d-%d'):format(first, hunk.last) or tostring(first)
end

--- Take back what was not changed since. How many hunks, and where the others are.
---@param bufnr integer
---@return integer, string[]
function M.take_back(bufnr)
  local hunks = vim.list_slice(buffers[bufnr] and buffers[bufnr].hunks or {})
  table.sort(hunks, function(a, b)
    return a.first > b.first or (a.first == b.first and a.last > b.last)
  end)
  local count = 0
  local left = {} ---@type specd.Hunk[]
  for _, hunk in ipairs(hunks) do -- from the last one up
    local state = M.state(bufnr, hunk)
    if state == 'in' then
      M.put_back(bufnr, hunk)
      count = count + 1
    elseif state ~= 'out' then
      table.insert(left, 1, hunk)
    end
  end
  local places = vim.tbl_map(function(hunk)
    return place_of(bufnr, hunk)
  end, left)
  return count, vim.fn.uniq(places)
end

return M
