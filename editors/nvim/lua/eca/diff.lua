-- Unified diffs: applying them in memory, and showing them in two windows.
local M = {}
local text = require("eca.text")

-- Applies a unified diff (file headers are optional) to lines, or undoes it with `reverse`. Returns nil and the
-- reason if the diff does not fit the lines.
function M.apply(lines, diff, reverse)
  local add, remove = "+", "-"
  if reverse then
    add, remove = remove, add
  end
  local out, at, in_hunk = {}, 1, false -- before the first hunk there are the names of the files
  for _, line in ipairs(vim.split(diff, "\n", { plain = true })) do
    local old, old_count, new, new_count = line:match("^@@ %-(%d+),?(%d*) %+(%d+),?(%d*) @@")
    if old then
      in_hunk = true
      local start = tonumber(reverse and new or old)
      local count = reverse and new_count or old_count
      if count == "0" then start = start + 1 end
      while at < start and at <= #lines do
        out[#out + 1] = lines[at]
        at = at + 1
      end
    elseif in_hunk then
      local kind, rest = line:sub(1, 1), line:sub(2)
      if kind == add then
        out[#out + 1] = rest
      elseif kind == " " or kind == remove then
        if lines[at] ~= rest then return nil, ("line %d is not what the change expects"):format(at) end
        if kind == " " then out[#out + 1] = rest end
        at = at + 1
      end
    end
  end
  for i = at, #lines do
    out[#out + 1] = lines[i]
  end
  return out
end

local function file_lines(path)
  local buf = vim.fn.bufnr(path)
  if buf > 0 and vim.api.nvim_buf_is_loaded(buf) then return vim.api.nvim_buf_get_lines(buf, 0, -1, false) end
  local ok, lines = pcall(vim.fn.readfile, path)
  return ok and lines or {}
end

local function scratch(name, lines, path)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].bufhidden = "wipe"
  vim.bo[buf].modifiable = false
  pcall(vim.api.nvim_buf_set_name, buf, ("eca://%s/%d/%s"):format(name, buf, vim.fn.fnamemodify(path, ":t")))
  local filetype = vim.filetype.match({ filename = path, buf = buf })
  if filetype then vim.bo[buf].syntax = filetype end
  vim.keymap.set("n", "q", "<cmd>tabclose<cr>", { buffer = buf, desc = "eca: close the diff" })
  return buf
end

-- Shows two versions side by side in a tab of their own; q closes it.
function M.show(path, before, after)
  vim.cmd.tabnew()
  local empty = vim.api.nvim_get_current_buf()
  vim.api.nvim_win_set_buf(0, scratch("before", before, path))
  pcall(vim.api.nvim_buf_delete, empty, {})
  vim.cmd.diffthis()
  vim.cmd("rightbelow vertical split")
  vim.api.nvim_win_set_buf(0, scratch("after", after, path))
  vim.cmd.diffthis()
end

-- Shows the change that a tool call makes (`done`: has made) to a file.
function M.show_call(details, done)
  local now = file_lines(details.path)
  local other, reason = M.apply(now, details.diff, done)
  if not other then
    text.warn(("cannot show the diff of %s: the file has changed since: %s"):format(text.path(details.path), reason))
    return
  end
  if done then
    M.show(details.path, other, now)
  else
    M.show(details.path, now, other)
  end
end

return M
