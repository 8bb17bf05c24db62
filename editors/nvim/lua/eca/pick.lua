-- Choices: models, agents, variants, chats, messages, MCP servers, jobs, logins.
local M = {}
local chats = require("eca.chat")
local server = require("eca.server")
local text = require("eca.text")
local ui = require("eca.ui")

-- Starts the daemon if needed, then calls fn with the current chat.
local function with_chat(fn)
  local chat = ui.current() or ui.open()
  chat = chats.root(chat)
  server.start(function(ok)
    if ok then fn(chat) end
  end)
end

local function select(what, items, format, fn)
  if #items == 0 then
    text.notify("there is no " .. what .. " to choose")
    return
  end
  vim.ui.select(items, {
    prompt = "eca: " .. what,
    format_item = function(item) return text.line(format and format(item) or item, 100) end,
  }, function(item)
    if item ~= nil then fn(item) end
  end)
end

local function choose(key, list, name, after)
  return function(given)
    with_chat(function(chat)
      local items = chats.setting(chat, list) or {}
      local function use(value)
        if not vim.tbl_contains(items, value) then
          text.warn(("there is no %s %q\n:Eca %s lists them"):format(name, value, name))
          return
        end
        chat[key] = value
        after(chat, value)
        chats.on_change(chat)
      end
      if given and given ~= "" then
        use(given)
        return
      end
      select(name, items, function(item) return item .. (item == chats.setting(chat, key) and " (now)" or "") end, use)
    end)
  end
end

M.model = choose("model", "models", "model", function(chat, value)
  chat.variant = nil
  server.notify("chat/selectedModelChanged", { chatId = chat.id, model = value })
end)

M.agent = choose(
  "agent",
  "agents",
  "agent",
  function(chat, value) server.notify("chat/selectedAgentChanged", { chatId = chat.id, agent = value }) end
)

M.variant = choose("variant", "variants", "variant", function(chat, value)
  local model = chats.setting(chat, "model")
  server.notify("chat/selectedModelChanged", { chatId = chat.id, model = model, variant = value })
end)

function M.chats()
  server.request("chat/list", { limit = 200 }, function(err, result)
    if err then return end
    select("chat", result.chats or {}, function(chat)
      local when = os.date("%Y-%m-%d %H:%M", math.floor((chat.updatedAt or 0) / 1000))
      local busy = chat.status ~= "idle" and (" · " .. tostring(chat.status)) or ""
      return ("%s  %s (%d messages)%s"):format(when, chat.title or "untitled", chat.messageCount or 0, busy)
    end, function(chosen) M.resume(chosen.id) end)
  end)
end

function M.resume(id)
  local chat = chats.chats[id]
  if not (chat and chat.view:valid() and #chat.prompts > 0) then chat = chats.open(id) end
  ui.latest = chat
  ui.show(chat)
end

-- Finds messages of all chats, and opens the chat at the one that is chosen.
function M.search(query)
  if query == "" then
    text.warn("the words to search for are missing: type them after :Eca search")
    return
  end
  server.request("chat/search", { query = query, limit = 50 }, function(err, result)
    if err then return end
    for _, problem in ipairs(result.problems or {}) do
      text.warn(problem)
    end
    if #result.results == 0 then
      local why = result.incomplete and "\nSome chats are not indexed yet: search again in a moment" or ""
      text.notify("no message was found" .. why)
      return
    end
    select("message", result.results, function(found)
      local parts = vim.tbl_map(function(part) return part.text end, found.snippet or {})
      local when = os.date("%Y-%m-%d %H:%M", math.floor(found.createdAt / 1000))
      return ("%s  %s: %s"):format(when, found.role, table.concat(parts))
    end, function(found)
      local chat = chats.open(found.chatId, nil, found.before)
      ui.latest = chat
      ui.show(chat)
    end)
  end)
end

local function choose_prompt(chat, fn)
  local prompts = {}
  for i = #chat.prompts, 1, -1 do
    if chat.prompts[i].id then prompts[#prompts + 1] = chat.prompts[i] end
  end
  select("prompt", prompts, function(prompt) return prompt.text end, fn)
end

function M.rollback()
  with_chat(function(chat)
    choose_prompt(chat, function(prompt)
      local parts = {
        { "messages and files", { "messages", "tools" } },
        { "messages only", { "messages" } },
        { "files only", { "tools" } },
      }
      select("what to take back from this prompt on", parts, function(part) return part[1] end, function(part)
        local params = { chatId = chat.id, contentId = prompt.id, include = part[2] }
        server.request("chat/rollback", params, function(err)
          if not err then
            vim.cmd.checktime()
            text.notify("rolled back " .. part[1])
          end
        end)
      end)
    end)
  end)
end

function M.fork()
  with_chat(function(chat)
    choose_prompt(chat, function(prompt)
      ui.switch_to_next = true
      server.request("chat/fork", { chatId = chat.id, contentId = prompt.id }, function() ui.switch_to_next = nil end)
    end)
  end)
end

function M.flag(words)
  with_chat(function(chat)
    choose_prompt(chat, function(prompt)
      local label = words ~= "" and words or "flag"
      server.request("chat/addFlag", { chatId = chat.id, contentId = prompt.id, text = label }, function() end)
    end)
  end)
end

function M.rename(title)
  with_chat(function(chat)
    local function rename(to)
      if to and to ~= "" then server.request("chat/update", { chatId = chat.id, title = to }, function() end) end
    end
    if title ~= "" then
      rename(title)
    else
      vim.ui.input({ prompt = "Title: ", default = chat.title }, rename)
    end
  end)
end

function M.trust()
  with_chat(function(chat)
    chat.trust = not chat.trust
    server.request("chat/update", { chatId = chat.id, trust = chat.trust }, function() end)
    text.notify(
      chat.trust and "calls of this chat run without being asked about; :Eca trust again asks" or "calls ask again"
    )
    chats.on_change(chat)
  end)
end

function M.delete()
  with_chat(function(chat)
    select("whether to delete this chat for good", { "keep it", "delete it" }, nil, function(choice)
      if choice == "delete it" then
        server.request("chat/delete", { chatId = chat.id }, function(err)
          if not err then
            ui.latest = nil
            ui.open(true)
          end
        end)
      end
    end)
  end)
end

function M.clear()
  with_chat(function(chat)
    server.request("chat/clear", { chatId = chat.id, messages = true }, function() end)
  end)
end

local actions = {
  running = { "stop", "disable", "logout" },
  stopped = { "start", "disable" },
  failed = { "start", "disable" },
  disabled = { "enable" },
  ["requires-auth"] = { "connect", "disable" },
  starting = { "stop" },
}

function M.mcp()
  server.start(function(ok)
    if not ok then return end
    local list = vim.tbl_values(server.servers)
    table.sort(list, function(a, b) return a.name < b.name end)
    select("MCP server", list, function(one)
      local tools = one.tools and (" · %d tools"):format(#one.tools) or ""
      local why = one.error and (" · " .. one.error) or ""
      return ("%s: %s%s%s"):format(one.name, one.status, tools, why)
    end, function(one)
      if one.type == "native" then
        local names = vim.tbl_map(
          function(tool) return tool.name .. (tool.disabled and " (off)" or "") end,
          one.tools or {}
        )
        text.notify("tools of eca: " .. table.concat(names, ", "))
        return
      end
      select(
        one.name,
        actions[one.status] or { "start", "stop" },
        nil,
        function(action) server.notify(("mcp/%sServer"):format(action), { name = one.name }) end
      )
    end)
  end)
end

function M.jobs()
  server.request("jobs/list", nil, function(err, result)
    if err then return end
    select(
      "job",
      result.jobs or {},
      function(job)
        return ("%s %s · %s · %s"):format(job.id, job.status, job.elapsed or "", job.summary or job.label or "")
      end,
      function(job)
        select(job.id, job.status == "running" and { "output", "kill" } or { "output" }, nil, function(action)
          if action == "kill" then
            server.request("jobs/kill", { jobId = job.id }, function() end)
            return
          end
          server.request("jobs/readOutput", { jobId = job.id }, function(failed, output)
            if failed then return end
            local lines = {}
            for _, line in ipairs(output.lines or {}) do
              vim.list_extend(lines, text.lines(line.text))
            end
            vim.cmd("botright new")
            vim.bo.buftype, vim.bo.bufhidden, vim.bo.swapfile = "nofile", "wipe", false
            vim.api.nvim_buf_set_lines(0, 0, -1, false, lines)
            vim.bo.modifiable = false
          end)
        end)
      end
    )
  end)
end

local step

-- Asks the user for the fields of a login one by one, and sends them.
local function fields(provider, list, index, data)
  local field = list[index]
  if not field then
    server.request("providers/loginInput", { provider = provider, data = data }, function(err, action)
      if not err then step(provider, action) end
    end)
    return
  end
  local function take(value)
    if value and value ~= "" then
      data[field.key] = value
      fields(provider, list, index + 1, data)
    else
      text.notify("the login was cancelled")
    end
  end
  local prompt = text.line(field.label or field.key, 80) .. ": "
  if field.type == "secret" then
    take(vim.fn.inputsecret(prompt))
  else
    vim.ui.input({ prompt = prompt }, take)
  end
end

function step(provider, action)
  local kind = action and action.action
  if kind == "choose-method" then
    select(
      "how to log in",
      action.methods or {},
      function(method) return method.label or method.key end,
      function(method)
        server.request("providers/login", { provider = provider, method = method.key }, function(err, next_action)
          if not err then step(provider, next_action) end
        end)
      end
    )
  elseif kind == "input" then
    fields(provider, action.fields or {}, 1, {})
  elseif kind == "authorize" or kind == "device-code" then
    local code = action.code and ("\nCode: " .. text.line(action.code, 80)) or ""
    text.notify(("%s\n%s%s"):format(action.message or "Log in with the browser", action.url or "", code))
    if vim.startswith(action.url or "", "https://") then vim.ui.open(action.url) end
    if action.fields then
      fields(provider, action.fields, 1, {})
    else
      server.login_pending = provider
    end
  elseif kind == "done" then
    server.logged_in(provider)
  end
end

local function provider_line(one)
  local from = one.auth.envVar or one.auth.source
  return ("%s: %s%s"):format(one.label or one.id, one.auth.status, from and (" · " .. from) or "")
end

function M.login(given)
  server.request("providers/list", nil, function(err, result)
    if err then return end
    local function login(provider)
      server.request("providers/login", { provider = provider.id }, function(failed, action)
        if not failed then step(provider.id, action) end
      end)
    end
    if given and given ~= "" then
      login({ id = given })
    else
      select("provider", result.providers or {}, provider_line, login)
    end
  end)
end

function M.logout()
  server.request("providers/list", nil, function(err, result)
    if not err then
      local known = vim.tbl_filter(function(one) return one.auth.source == "login" end, result.providers or {})
      select("provider with a login", known, provider_line, function(one)
        server.request("providers/logout", { provider = one.id }, function() end)
      end)
    end
  end)
end

return M
