-- The command :Eca.
local M = {}
local chats = require("eca.chat")
local decide = require("eca.decide")
local inline = require("eca.inline")
local pick = require("eca.pick")
local server = require("eca.server")
local text = require("eca.text")
local ui = require("eca.ui")

local function current(fn)
  return function()
    local chat = ui.current()
    if chat then
      fn(chat)
    else
      text.notify("no chat in this tab\n:Eca opens one")
    end
  end
end

local scopes = { "session", "workspace", "global" }

-- Each takes its argument as text, and the command's range.
M.commands = {
  open = function() ui.open() end,
  new = function() ui.open(true) end,
  close = ui.close,
  toggle = ui.toggle,
  send = function(words)
    if words == "" then
      text.warn("the prompt is missing: type it after :Eca send")
      return
    end
    chats.send(chats.root(ui.open()), words, require("eca.complete").contexts(words))
  end,
  stop = current(chats.stop),
  approve = function() decide.focus() end,
  accept = function() decide.approve() end,
  remember = function(scope)
    scope = scope == "" and "session" or scope
    if vim.tbl_contains(scopes, scope) then
      decide.approve(nil, scope)
    else
      text.warn("the scope must be session, workspace or global")
    end
  end,
  reject = function(words) decide.reject(nil, words) end,
  answer = function(words) decide.answer(nil, words ~= "" and words or nil) end,
  model = pick.model,
  agent = pick.agent,
  variant = pick.variant,
  chats = pick.chats,
  resume = function(id)
    if id == "" then
      pick.chats()
    else
      pick.resume(id)
    end
  end,
  search = pick.search,
  rollback = pick.rollback,
  fork = pick.fork,
  flag = pick.flag,
  rename = pick.rename,
  trust = pick.trust,
  delete = pick.delete,
  clear = pick.clear,
  mcp = pick.mcp,
  jobs = pick.jobs,
  login = pick.login,
  logout = pick.logout,
  add = function(_, range)
    local path = vim.api.nvim_buf_get_name(0)
    if path == "" or vim.bo.buftype ~= "" then
      text.warn("this buffer is not a file\nOpen a file, then :Eca add, with a selection or without")
      return
    end
    ui.add_to_prompt("@" .. path .. (range and (":L%d-L%d"):format(range[1], range[2]) or "") .. " ")
  end,
  rewrite = function(words, range)
    local line = vim.api.nvim_win_get_cursor(0)[1]
    range = range or { line, line }
    inline.rewrite(range[1], range[2], words)
  end,
  complete = function() inline.complete() end,
  restart = function()
    server.restart(function(ok)
      if ok then text.notify("eca " .. server.info.version .. " is running") end
    end)
  end,
  shutdown = function() server.stop() end,
  log = function()
    vim.cmd.tabnew(vim.fn.fnameescape(server.log_path))
    vim.bo.readonly = true
    vim.cmd("normal! G")
  end,
  health = function() vim.cmd.checkhealth("eca") end,
}

function M.run(args)
  local name, rest = args.args:match("^(%S*)%s*(.-)%s*$")
  local command = M.commands[name == "" and "open" or name]
  if not command then
    text.warn(("there is no command %q\n:Eca followed by Tab lists them"):format(name))
    return
  end
  command(rest, args.range > 0 and { args.line1, args.line2 } or nil)
end

function M.complete(lead, line)
  local words = vim.split(line, "%s+", { trimempty = true })
  local at_name = #words == 1 or (#words == 2 and lead ~= "")
  local options = vim.tbl_keys(M.commands)
  if not at_name then
    local chat = ui.current()
    local lists = { model = "models", agent = "agents", variant = "variants" }
    local list = lists[words[2]]
    options = words[2] == "remember" and scopes or list and ((chat and chat[list]) or server.session[list]) or {}
  end
  local fitting = vim.tbl_filter(function(option) return vim.startswith(option, lead) end, options)
  table.sort(fitting)
  return fitting
end

return M
