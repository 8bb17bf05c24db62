-- Windows: a chat, and a prompt below it, in any tab.
local M = {}
local api = vim.api
local chats = require("eca.chat")
local complete = require("eca.complete")
local config = require("eca.config")
local decide = require("eca.decide")
local server = require("eca.server")
local text = require("eca.text")

local function chat_of(buf) return chats.chats[vim.b[buf].eca_chat or ""] end

-- The window of this tab with a buffer of the given kind (eca_chat or eca_prompt).
local function window(kind)
  for _, win in ipairs(api.nvim_tabpage_list_wins(0)) do
    if vim.b[api.nvim_win_get_buf(win)][kind] then return win end
  end
end

-- The chat for commands: that of the current buffer, else that of this tab.
function M.current()
  local buf = api.nvim_get_current_buf()
  local id = vim.b[buf].eca_chat or vim.b[buf].eca_prompt
  local win = not id and window("eca_chat")
  if win then id = vim.b[api.nvim_win_get_buf(win)].eca_chat end
  return id and chats.chats[id]
end

local function options(win, bar)
  for name, value in pairs({
    number = false,
    relativenumber = false,
    signcolumn = "no",
    foldcolumn = "0",
    spell = false,
    list = false,
    wrap = true,
    linebreak = true,
    breakindent = true,
    fillchars = "eob: ",
    conceallevel = 0, -- links show where they lead
    winfixwidth = true,
    winbar = bar,
  }) do
    vim.wo[win][0][name] = value
  end
end

local function prompt_buffer(chat)
  if chat.prompt and api.nvim_buf_is_valid(chat.prompt) then return chat.prompt end
  local buf = api.nvim_create_buf(false, true)
  chat.prompt = buf
  vim.bo[buf].bufhidden, vim.bo[buf].swapfile = "hide", false
  pcall(api.nvim_buf_set_name, buf, "eca://prompt/" .. chat.id:sub(1, 13))
  vim.b[buf].eca_prompt = chat.id
  vim.bo[buf].filetype = "eca-prompt"
  vim.bo[buf].omnifunc = "v:lua.require'eca.complete'.omnifunc"
  M.keys(buf, chat)
  local function map(modes, key, description, fn)
    vim.keymap.set(modes, key, fn, { buffer = buf, desc = "eca: " .. description })
  end
  map("n", "<CR>", "send the prompt", M.submit)
  map("i", "<C-s>", "send the prompt", M.submit)
  map("i", "<C-j>", "new line", function() api.nvim_feedkeys("\r", "n", false) end)
  if config.options.enter_sends then
    vim.keymap.set(
      "i",
      "<CR>",
      function() return vim.fn.pumvisible() == 1 and "<C-y>" or "<Cmd>lua require('eca.ui').submit()<CR>" end,
      { buffer = buf, expr = true, desc = "eca: send the prompt" }
    )
  end
  complete.attach(buf)
  return buf
end

-- Sends the text in the prompt. If that fails, the text returns to the prompt.
function M.submit()
  local buf = api.nvim_get_current_buf()
  local chat = chats.chats[vim.b[buf].eca_prompt or ""]
  local message = vim.trim(table.concat(api.nvim_buf_get_lines(buf, 0, -1, false), "\n"))
  if not chat then
    text.warn("this chat was deleted\n:Eca new begins another")
    return
  elseif message == "" then
    return
  end
  api.nvim_buf_set_lines(buf, 0, -1, false, {})
  chats.send(chat, message, complete.contexts(message), function()
    local now = table.concat(api.nvim_buf_get_lines(buf, 0, -1, false), "\n")
    if now == "" then api.nvim_buf_set_lines(buf, 0, -1, false, vim.split(message, "\n")) end
  end)
end

-- Shows a chat in this tab.
function M.show(chat, stay)
  local before = api.nvim_get_current_win()
  local win = window("eca_chat")
  if not win then
    vim.cmd("botright vertical split")
    win = api.nvim_get_current_win()
    api.nvim_win_set_width(win, math.max(40, math.floor(vim.o.columns * config.options.width)))
  end
  vim.wo[win].winfixbuf = false
  api.nvim_win_set_buf(win, chat.view.buf)
  options(win, "%!v:lua.require'eca.ui'.bar()")
  chat.shown = true
  chat.view:flush()
  chat.view:follow({ win })
  local below = window("eca_prompt")
  if chat.parent then
    if below then api.nvim_win_close(below, true) end
    api.nvim_set_current_win(win)
  else
    if not below then
      api.nvim_set_current_win(win)
      vim.cmd("belowright split")
      below = api.nvim_get_current_win()
      api.nvim_win_set_height(below, config.options.prompt_height)
    end
    vim.wo[below].winfixbuf = false
    api.nvim_win_set_buf(below, prompt_buffer(chat))
    options(below, " Prompt · Enter sends%#EcaSystem#  @ / # complete, Ctrl-J new line%<")
    vim.wo[below][0].winfixheight = true
    api.nvim_set_current_win(below)
    chat.view:follow({ win })
  end
  if stay and api.nvim_win_is_valid(before) then api.nvim_set_current_win(before) end
  chats.welcome(chat)
  decide.refresh()
end

-- Opens the chat of this tab, or a new one, and starts the daemon.
function M.open(new)
  local chat = not new and (M.current() or M.latest) or nil
  if not chat or not chats.chats[chat.id] then chat = chats.new() end
  if not chat.view:valid() then
    chats.attach(chat)
    chats.open(chat.id)
  end
  M.latest = chat
  M.show(chat)
  server.start(function(ok)
    if ok then server.add_folder(vim.fn.getcwd()) end
  end)
  return chat
end

function M.close()
  for _, kind in ipairs({ "eca_prompt", "eca_chat" }) do
    local win = window(kind)
    if win and #api.nvim_tabpage_list_wins(0) > 1 then api.nvim_win_close(win, true) end
  end
end

function M.toggle()
  if window("eca_chat") then
    M.close()
  else
    M.open()
  end
end

decide.window_of = function(chat)
  for _, win in ipairs(api.nvim_tabpage_list_wins(0)) do
    local shown = chat_of(api.nvim_win_get_buf(win))
    if shown and (shown == chat or shown == chats.root(chat)) then return win end
  end
end

text.in_chat = function(message, level)
  local win = window("eca_chat")
  local chat = win and chat_of(api.nvim_win_get_buf(win))
  if not chat then return false end
  chat.view:notice(message, level >= vim.log.levels.WARN and "EcaToolError" or nil)
  return true
end

chats.on_opened = function(chat)
  if M.switch_to_next then
    M.switch_to_next = nil
    M.latest = chat
    M.show(chat)
  end
end

local redraw_scheduled = false
chats.on_change = function()
  if not redraw_scheduled then
    redraw_scheduled = true
    vim.defer_fn(function()
      redraw_scheduled = false
      vim.cmd.redrawstatus({ bang = true })
    end, 50)
  end
end

local function tokens(n) return n >= 10000 and ("%dk"):format(n / 1000) or tostring(n) end

-- The activity of a chat: for the bar of its window, and for status lines.
function M.status(chat)
  local root = chats.root(chat)
  local waits = #vim.tbl_filter(function(item) return chats.root(item.chat) == root end, decide.items)
  if server.state ~= "running" then
    return server.state == "starting" and "starting"
      or (server.problem and "not running, :Eca restart" or "not started")
  elseif waits > 0 then
    return ("waits for you: %d (ga)"):format(waits)
  elseif chat.stopping then
    return "stopping"
  elseif chat.running then
    return chat.progress or "running"
  end
  return select(2, next(server.tasks)) or "ready"
end

function M.bar()
  local chat = chat_of(api.nvim_win_get_buf(vim.g.statusline_winid))
  if not chat then return "" end
  local parts = { chat.trust and "AUTO-APPROVE" or nil }
  local models = server.session.models
  if models and #models == 0 then
    parts[#parts + 1] = "no model, :Eca login"
  else
    parts[#parts + 1] = chats.setting(chat, "model") or chat.used_model
  end
  parts[#parts + 1] = chats.setting(chat, "agent")
  parts[#parts + 1] = chats.setting(chat, "variant")
  local usage = chat.usage or {}
  if usage.sessionTokens then
    local limit = usage.limit and usage.limit.context and ("/" .. tokens(usage.limit.context)) or ""
    parts[#parts + 1] = tokens(usage.sessionTokens) .. limit
  end
  if usage.sessionCost then parts[#parts + 1] = "$" .. usage.sessionCost end
  local jobs = #vim.tbl_filter(function(job) return job.status == "running" end, server.jobs)
  if jobs > 0 then parts[#parts + 1] = ("%d jobs"):format(jobs) end
  local title = chat.title or (chat.parent and "Subagent" or "New chat")
  local busy = chat.running and "%#EcaBusy#● " or "%#EcaSystem#"
  local status = text.status(M.status(chat), 60)
  local facts = text.status(table.concat(parts, " · "), 120)
  -- The title is the first to be shortened.
  local room = api.nvim_win_get_width(vim.g.statusline_winid) - vim.fn.strdisplaywidth(status .. facts) - 6
  title = text.status(title, math.max(5, math.min(50, room)))
  return ("%%#EcaTitle# %s %s%s%%#EcaSystem# %%=%s%%< "):format(title, busy, status, facts)
end

local help = {
  "Enter, Tab   unfold the call or the reasoning below the cursor; open a subagent; load earlier messages",
  "ga           decide about the call or the question that waits",
  "gd           the change of the call below the cursor, side by side",
  "]] and [[    next and previous prompt",
  "Ctrl-C       stop the turn",
  "gx           open the web address below the cursor",
  "Commands: :Eca followed by Tab lists them; :help eca",
}

local function act(toggle_only)
  local chat = chat_of(0)
  local block = chat and chat.view:block_at_cursor()
  if block and (toggle_only or not block.action or block.action() == false) then chat.view:toggle(block) end
end

-- Sets the key mappings of the buffers of a chat and its prompt.
function M.keys(buf, chat)
  local function map(modes, key, description, fn)
    vim.keymap.set(modes, key, fn, { buffer = buf, nowait = true, desc = "eca: " .. description })
  end
  map("n", "ga", "decide about a waiting call or question", function() decide.focus() end)
  map("n", "<C-c>", "stop the turn", function() chats.stop(chat) end)
  map("n", "g?", "show the keys", function() text.notify("keys\n" .. table.concat(help, "\n")) end)
  if not vim.b[buf].eca_chat then return end
  map("n", "<CR>", "open what is below the cursor", act)
  map("n", "<Tab>", "unfold what is below the cursor", function() act(true) end)
  map("n", "]]", "next prompt", function() chat.view:jump(1) end)
  map("n", "[[", "previous prompt", function() chat.view:jump(-1) end)
  map("n", "gd", "the change of a call, side by side", function()
    local block = chat.view:block_at_cursor()
    local call = block and block.call
    if call and (call.details or {}).type == "fileChange" then
      require("eca.diff").show_call(call.details, call.state == "done")
    end
  end)
  -- Models write these links: only web addresses are opened, and only on this key.
  map("n", "gx", "open a web address", function()
    local url = vim.fn.expand("<cWORD>"):match("https?://[%w%-%._~:/%?#%[%]@!%$&'%*%+,;=%%]+")
    if url then
      vim.ui.open((url:gsub("[%]%.,;]+$", "")))
    else
      text.notify("no web address (http or https) below the cursor")
    end
  end)
end
chats.keys = M.keys

-- Adds text at the end of the prompt of this tab's chat, opening one if need be.
function M.add_to_prompt(words)
  local chat = M.open()
  local buf = prompt_buffer(chat)
  local last = api.nvim_buf_line_count(buf)
  local line = api.nvim_buf_get_lines(buf, last - 1, last, false)[1]
  local gap = (line == "" or line:sub(-1) == " ") and "" or " "
  api.nvim_buf_set_lines(buf, last - 1, last, false, vim.split(line .. gap .. words, "\n"))
  local win = window("eca_prompt")
  if win then api.nvim_win_set_cursor(win, { api.nvim_buf_line_count(buf), #(line .. gap .. words) }) end
end

return M
