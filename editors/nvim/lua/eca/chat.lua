-- The state of chats: applies the daemon's notifications, and sends the user's prompts and decisions.
local M = {}
local calls = require("eca.call")
local config = require("eca.config")
local decide = require("eca.decide")
local server = require("eca.server")
local text = require("eca.text")
local View = require("eca.view")

M.chats = {} -- by id
M.on_change = function() end -- (chat): a change that window bars show
M.on_opened = function() end -- (chat): the daemon opened a chat, in a fork for example
M.keys = function() end -- (buf, chat): sets the key mappings of a chat's buffer

function M.new(id, parent)
  local chat = { id = id or text.uuid(), parent = parent, calls = {}, prompts = {}, steer = nil, running = false }
  M.chats[chat.id] = chat
  M.attach(chat)
  return chat
end

-- Creates the buffer of a chat.
function M.attach(chat)
  chat.view = View.new(chat.id:sub(1, 13), function(buf)
    vim.b[buf].eca_chat = chat.id
    M.keys(buf, chat)
  end)
end

function M.get(id, parent)
  if type(id) ~= "string" then error("a chat without an id") end
  return M.chats[id] or M.new(id, parent)
end

-- The top chat of a subagent's chat: only it has a prompt.
function M.root(chat) return chat.parent and M.chats[chat.parent] and M.root(M.chats[chat.parent]) or chat end

-- The setting of a chat; the default is the session's.
function M.setting(chat, key)
  if chat[key] ~= nil then return chat[key] end
  return server.session[key]
end

local function ended(chat)
  chat.running, chat.progress, chat.stopping = false, nil, nil
  decide.drop(function(item) return item.chat == chat end)
  M.on_change(chat)
  local steer = chat.steer
  chat.steer = nil
  if steer then M.send(chat, steer) end
end

local content = {}

function content.text(chat, c, role)
  if role == "user" then
    chat.prompts[#chat.prompts + 1] = { id = c.contentId, text = c.text }
    chat.view:user(c.text)
    if chat.steer and vim.trim(c.text or "") == vim.trim(chat.steer) then chat.steer = nil end
  elseif role == "system" then
    chat.view:notice(c.text)
  else
    chat.view:stream(c.text)
  end
end

function content.url(chat, c) chat.view:stream(("%s <%s>\n"):format(c.title or "", c.url or "")) end

function content.image(chat, c)
  local size = ("%d KB"):format(#(c.base64 or "") * 3 / 4096)
  chat.view:block({
    folded = true,
    header = function()
      return ("▣ image (%s, %s) · Enter opens it"):format(text.line(c.mediaType, 40), size), "EcaTool"
    end,
    action = function()
      local kind = (c.mediaType or ""):match("^image/(%w+)$") or "bin"
      local path = vim.fn.tempname() .. "." .. kind
      local file = assert(io.open(path, "wb"))
      file:write(vim.base64.decode(c.base64))
      file:close()
      vim.ui.open(path)
      text.notify("the image is in " .. path)
    end,
  })
end

function content.progress(chat, c)
  if c.state == "finished" then
    chat.view:flush()
    ended(chat)
  else
    chat.running, chat.progress = true, text.line(c.text, 80)
    M.on_change(chat)
  end
end

function content.usage(chat, c)
  chat.usage = c
  M.on_change(chat)
end

function content.metadata(chat, c)
  chat.title = c.title
  M.on_change(chat)
end

function content.flag(chat, c) chat.view:notice("⚑ " .. (c.text or "")) end

function content.reasonStarted(chat, c)
  local reason = { parts = {}, state = "Thinking…" }
  chat.calls["reason " .. c.id] = reason
  reason.block = chat.view:block({
    header = function() return "∴ " .. reason.state, "EcaReason" end,
    body = function() return text.lines(table.concat(reason.parts)) end,
  })
end

function content.reasonText(chat, c)
  local reason = chat.calls["reason " .. c.id]
  reason.parts[#reason.parts + 1] = c.text
end

function content.reasonFinished(chat, c)
  local reason = chat.calls["reason " .. c.id]
  reason.state = ("Thought for %.1f s"):format((c.totalTimeMs or 0) / 1000)
  chat.view:update(reason.block)
end

function content.hookActionStarted() end

function content.hookActionFinished(chat, c)
  chat.view:block({
    header = function()
      local failed = c.status ~= 0
      return ("%s hook %s"):format(failed and "✗" or "✓", text.line(c.name, 60)),
        failed and "EcaToolError" or "EcaSystem"
    end,
    body = function() return text.lines((c.output or "") .. "\n" .. (c.error or "")) end,
  })
end

-- A list of tasks stays one block, which is moved to the end when the next turn changes it.
local function tasks(chat, details)
  local old = chat.tasks
  chat.tasks = details
  if old and chat.task_block and chat.view:valid() and chat.task_turn == #chat.prompts then
    chat.view:update(chat.task_block)
    return
  end
  if #(details.tasks or {}) == 0 then return end
  chat.task_turn = #chat.prompts
  chat.task_block = chat.view:block({
    header = function()
      local sum = chat.tasks.summary or {}
      local active = text.line(chat.tasks.activeSummary, 80)
      return ("☰ Tasks: %d of %d done %s"):format(sum.done or 0, sum.total or 0, active), "EcaTool"
    end,
    body = function() return calls.tasks(chat.tasks) end,
  })
end

local function call_of(chat, c)
  local call = chat.calls[c.id]
  if not call then
    call = { id = assert(c.id, "a tool call without an id"), state = "preparing", name = c.name, server = c.server }
    chat.calls[c.id] = call
    call.summary, call.details = c.summary, c.details
    call.block = chat.view:block({
      header = function() return calls.header(call) end,
      body = function() return calls.lines(call, true) end,
      action = function()
        local id = (call.details or {}).subagentChatId
        if call.state == "waiting" then
          decide.focus(call)
        elseif id and M.chats[id] then
          require("eca.ui").show(M.chats[id])
        else
          return false
        end
      end,
    })
    call.block.call = call
  end
  for _, key in ipairs({ "name", "server", "summary", "details", "arguments", "permission", "outputs", "reason" }) do
    if c[key] ~= nil then call[key] = c[key] end
  end
  call.ms = c.totalTimeMs or call.ms
  return call
end

local function is_tasks(c) return c.server == "eca" and c.name == "task" end

function content.toolCallPrepare(chat, c)
  if is_tasks(c) then return end
  local call = call_of(chat, c)
  local size = call.size or 0
  call.size = size + #(c.argumentsText or "")
  if math.floor(size / 8192) ~= math.floor(call.size / 8192) then chat.view:update(call.block) end
end

local function stage(chat, c, state)
  local call = call_of(chat, c)
  call.state = state
  decide.drop(function(item) return item.call == call end)
  chat.view:update(call.block)
  return call
end

function content.toolCallRun(chat, c)
  if is_tasks(c) then return end
  local call = stage(chat, c, c.manualApproval and "waiting" or "running")
  if c.manualApproval then
    decide.add({ kind = "approval", chat = chat, call = call })
    M.on_change(chat)
  end
end

function content.toolCallRunning(chat, c)
  if not is_tasks(c) then stage(chat, c, "running") end
end

function content.toolCalled(chat, c)
  if is_tasks(c) then
    if c.details then tasks(chat, c.details) end
    return
  end
  local call = stage(chat, c, c.error and "failed" or "done")
  local path = (call.details or {}).path
  local buf = path and vim.fn.bufnr(vim.fn.fnameescape(path)) or -1
  if buf > 0 and vim.api.nvim_buf_is_loaded(buf) then
    vim.cmd.checktime(buf) -- shows the file as it is now, or asks if the buffer has other changes
  end
end

function content.toolCallRejected(chat, c) stage(chat, c, "rejected") end

local function receive(params)
  local c = params.content
  if type(c) ~= "table" then error("content that is not an object") end
  if params.chatId == nil then
    text.notify(c.text or "")
    return
  end
  local chat = M.get(params.chatId, params.parentChatId)
  if not chat.view:valid() then
    return -- the user has wiped its buffer out; opening the chat again shows everything
  end
  local handler = content[c.type]
  if handler then handler(chat, c, params.role) end
end

server.on("chat/contentReceived", receive)

server.on("chat/cleared", function(params)
  local chat = M.chats[params.chatId]
  if chat and params.messages and chat.view:valid() then
    chat.calls, chat.prompts, chat.tasks, chat.task_block, chat.usage = {}, {}, nil, nil, nil
    chat.view:clear()
  end
end)

server.on("chat/opened", function(params)
  local known = M.chats[params.chatId] ~= nil
  local chat = M.get(params.chatId)
  chat.title = params.title or chat.title
  if not known then M.on_opened(chat) end
  M.on_change(chat)
end)

server.on("chat/statusChanged", function(params)
  local chat = M.chats[params.chatId]
  if chat then
    chat.running = params.status == "running" or params.status == "stopping"
    chat.progress = chat.running and (chat.progress or "Running") or nil
    M.on_change(chat)
  end
end)

server.on("chat/deleted", function(params)
  local chat = M.chats[params.chatId]
  if chat then
    M.chats[params.chatId] = nil
    if chat.view:valid() then chat.view:notice("This chat was deleted.") end
  end
end)

server.on("config/updated", function(params)
  local news = params.chat or {}
  local target = server.session
  if params.chatId ~= nil then target = M.chats[params.chatId] or {} end
  target.models, target.agents = news.models or target.models, news.agents or target.agents
  if news.variants then
    target.variants, target.variant = news.variants, news.selectVariant
  end
  target.variant = news.selectVariant or target.variant
  target.model, target.agent = news.selectModel or target.model, news.selectAgent or target.agent
  target.welcome = news.welcomeMessage or target.welcome
  if news.selectTrust ~= nil then target.trust = news.selectTrust end
  M.on_change(M.chats[params.chatId])
end)

-- Notices of the daemon in a chat that is still empty.
function M.welcome(chat)
  if #chat.prompts == 0 and not chat.welcomed and server.session.welcome then
    chat.welcomed = true
    chat.view:stream(server.session.welcome .. "\n")
    chat.view:notice(
      "Enter sends the prompt · @ adds files · / has commands · ga decides about a call · g? shows the keys"
    )
  end
end

server.listen(function(event, message)
  for _, chat in pairs(M.chats) do
    if event == "ready" then
      if chat.shown then M.welcome(chat) end
    elseif chat.view:valid() then
      for _, call in pairs(chat.calls) do
        if call.state == "running" or call.state == "waiting" or call.state == "preparing" then
          call.state, call.reason = "rejected", "the daemon ended"
          chat.view:update(call.block)
        end
      end
      if event == "ended" and message and chat.running then
        chat.view:notice("The turn was cut off.", "EcaToolError")
      end
      chat.steer = nil
      ended(chat)
    end
  end
end)

-- Sends a prompt, or steers the running turn. `failed`, if given, is called if the prompt was not accepted.
function M.send(chat, message, contexts, failed)
  if chat.running and server.state == "running" then
    chat.steer = chat.steer and (chat.steer .. "\n" .. message) or message
    server.notify("chat/promptSteer", { chatId = chat.id, message = message })
    text.notify("sent to the running turn, which reads it before its next step")
    return
  end
  if chat.later then -- the answer would follow messages that are not shown
    M.open(chat.id, function() M.send(chat, message, contexts, failed) end)
    return
  end
  chat.running, chat.progress = true, server.state == "running" and "Sending" or "Starting eca"
  M.on_change(chat)
  local params = { chatId = chat.id, message = message, model = chat.model, agent = chat.agent, variant = chat.variant }
  params.trust = chat.trust
  if contexts and #contexts > 0 then params.contexts = contexts end
  server.request("chat/prompt", params, function(err, result)
    if err then
      chat.running, chat.progress = false, nil
      local why = err.message ~= server.problem and (": " .. (err.message or "")) or ""
      chat.view:notice("The prompt was not sent" .. why, "EcaToolError")
      if failed then failed() end
    elseif type(result) == "table" and result.model and result.model ~= "error" then
      chat.used_model = result.model
    end
    M.on_change(chat)
    return true
  end)
end

function M.stop(chat)
  chat = M.root(chat)
  if not chat.running then
    text.notify("nothing runs in this chat")
    return
  end
  chat.steer = nil
  server.notify("chat/promptStop", { chatId = chat.id })
  local turn = {}
  chat.stopping = turn
  vim.defer_fn(function()
    if chat.stopping == turn and chat.running then
      text.warn("the daemon has not stopped the turn within 10 s\n:Eca restart restarts the daemon")
    end
  end, 10000)
end

-- Shows a stored chat: its newest messages, or those that end before a cursor, and where to get the others.
function M.open(id, callback, before)
  local chat = M.get(id)
  if not chat.view:valid() then M.attach(chat) end
  server.request("chat/open", { chatId = id, limit = config.options.page, before = before }, function(err, result)
    if not err and not result.found then
      text.warn("the chat is not stored any more\n:Eca chats lists the stored chats")
      return
    elseif err then
      return
    end
    local selection = result.selection or {}
    chat.title = result.title or chat.title
    chat.model, chat.agent, chat.variant = selection.model, selection.agent, selection.variant
    chat.variants, chat.trust = selection.variants, selection.trust
    M.offer_later(chat, result.meta)
    chat.view:flush()
    M.offer_earlier(chat, result.meta)
    chat.view:follow()
    M.on_change(chat)
    if callback then callback(chat) end
  end)
  return chat
end

function M.offer_earlier(chat, meta)
  local cursor = meta and meta.beforeCursor
  if not cursor then return end
  local block = {
    folded = true,
    header = function() return "↑ Earlier messages: Enter loads them", "EcaSystem" end,
    action = function() M.load_earlier(chat) end,
  }
  chat.earlier = { cursor = cursor, block = block }
  chat.view:prepend(0, function() chat.view:block(block) end)
end

-- Marks the end of messages that are not the newest.
function M.offer_later(chat, meta)
  chat.later = meta and meta.afterCursor
  if not chat.later then return end
  chat.view:block({
    folded = true,
    header = function() return "↓ Later messages: Enter shows the newest", "EcaSystem" end,
    action = function() M.open(chat.id) end,
  })
end

function M.load_earlier(chat)
  local earlier = chat.earlier
  if not earlier or earlier.loading then return end
  earlier.loading = true
  local params = { chatId = chat.id, before = earlier.cursor, limit = config.options.page }
  server.request("chat/history", params, function(err, result)
    earlier.loading = nil
    local problem = err or result.error
    if problem then
      text.warn(
        "cannot load earlier messages: " .. text.line(problem.message, 200) .. "\nOpen the chat again with :Eca chats"
      )
      return true
    end
    local row = chat.view:row(earlier.block)
    local prompts = chat.prompts
    chat.prompts = {}
    chat.view:prepend(row + 1, function()
      for _, received in ipairs(result.contents or {}) do
        receive(received)
      end
    end)
    chat.prompts = vim.list_extend(chat.prompts, prompts)
    chat.view:edit(function() vim.api.nvim_buf_set_lines(chat.view.buf, row, row + 1, false, {}) end)
    chat.earlier = nil
    M.offer_earlier(chat, result.meta)
  end)
end

return M
