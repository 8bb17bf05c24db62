-- The options of the plugin. `setup` merges the user's over these.
local M = {}

M.options = {
  -- The program. "server" and `args` follow it; `{ "ssh", "host", "eca" }` works too.
  cmd = { "eca" },
  args = {},
  env = {},
  -- Workspace folders, a list or a function that returns one. Default: the current directory.
  roots = nil,
  -- Share of the columns for the chat window, and lines of the prompt window.
  width = 0.45,
  prompt_height = 6,
  -- Whether Enter sends in insert mode. Ctrl-J starts a new line either way.
  enter_sends = true,
  -- Milliseconds to wait for the answer to `initialize`, and to other requests.
  start_timeout = 15000,
  request_timeout = 30000,
  -- Messages of a stored chat that are loaded at once, and the size in bytes from which on a chat has
  -- no Markdown highlighting, because a parser over megabytes would make typing slow.
  page = 100,
  highlight_limit = 1000000,
  -- Whether the model's reasoning and the outputs of tools are shown unfolded.
  unfold = false,
  -- Suggest completions while typing, this many milliseconds after the last key. `false`: on request only.
  inline = { auto = false, delay = 400 },
}

function M.setup(options)
  M.options = vim.tbl_deep_extend("force", M.options, options or {})
  if type(M.options.cmd) == "string" then M.options.cmd = { M.options.cmd } end
end

-- The workspace folders as absolute paths.
function M.roots()
  local roots = M.options.roots
  if type(roots) == "function" then roots = roots() end
  if type(roots) ~= "table" or #roots == 0 then roots = { vim.fn.getcwd() } end
  return vim.tbl_map(function(dir) return vim.fs.normalize(vim.fn.fnamemodify(dir, ":p")) end, roots)
end

return M
