-- The daemon's process: finds, checks, starts and stops it. This module also holds the state outside chats.
local M = {}
local config = require("eca.config")
local rpc = require("eca.rpc")
local text = require("eca.text")

M.version = "0.1.0" -- of this plugin
M.minimum = "0.1.0" -- of eca

M.state = "stopped" -- stopped, starting or running
M.problem = nil -- why it is not running, with what to do about it
M.info = {} -- name and version of the daemon
M.session = {} -- models, agents, variants, model, agent, variant, welcome
M.login_pending = nil -- a provider whose login continues in the browser
M.servers, M.jobs, M.tasks = {}, {}, {}
M.folders = {}

local waiting, stderr, reported = {}, {}, {}
local notifications, requests, listeners = {}, {}, {}

-- Registers the handler of a notification (params) or a request (params, answer(result), id) of the daemon.
function M.on(method, handler) notifications[method] = handler end

function M.on_request(method, handler) requests[method] = handler end

-- Calls fn(event, message) with "ready", "failed" or "ended".
function M.listen(fn) listeners[#listeners + 1] = fn end

local function emit(event, message)
  for _, fn in ipairs(listeners) do
    fn(event, message)
  end
end

M.log_path = vim.fs.joinpath(vim.fn.stdpath("log"), "eca.log")

function M.log(line)
  local stat = vim.uv.fs_stat(M.log_path)
  if not stat then vim.fn.mkdir(vim.fs.dirname(M.log_path), "p") end
  local file = io.open(M.log_path, stat and stat.size > 5000000 and "w" or "a")
  if file then
    file:write(line, line:sub(-1) == "\n" and "" or "\n")
    file:close()
  end
end

local function fail(message)
  M.state, M.problem = "stopped", message
  M.log("plugin: " .. message)
  text.error(message)
  local callbacks = waiting
  waiting = {}
  emit("failed", message)
  for _, callback in ipairs(callbacks) do
    callback(false)
  end
end

local function program() return table.concat(config.options.cmd, " ") end

-- The last line of the daemon's error output.
local function last_stderr_line()
  local lines = vim.split(table.concat(stderr), "\n", { trimempty = true })
  return #lines > 0 and ("\nIts last message: " .. text.line(lines[#lines], 300)) or ""
end

local restart_hint = "\n:Eca restart starts it again, :Eca log shows its log, :checkhealth eca looks for the cause"

-- Calls callback(version) or callback(nil, reason).
function M.check_program(callback)
  local cmd = vim.list_extend({}, config.options.cmd)
  if vim.fn.executable(cmd[1]) == 0 then
    callback(
      nil,
      ("cannot find the program %q\nInstall eca so that it is on PATH, or set it: "):format(cmd[1])
        .. 'require("eca").setup({ cmd = { "/path/to/eca" } })'
    )
    return
  end
  cmd[#cmd + 1] = "--version"
  local ok, err = pcall(vim.system, cmd, { text = true, timeout = 10000, env = config.options.env }, function(out)
    vim.schedule(function()
      local version = (out.stdout or ""):match("^eca%s+v?(%d+%.%d+%.%d+%S*)")
      if version and vim.version.lt(version:gsub("%-.*", ""), M.minimum) then
        callback(
          nil,
          ("%s is eca %s, and the plugin needs %s or newer\nUpdate eca"):format(program(), version, M.minimum)
        )
      elseif version then
        callback(version)
      elseif out.code == 124 then
        callback(nil, ("%s --version did not end within 10 s\nCheck the option cmd"):format(program()))
      else
        local said = text.line((out.stdout or "") .. " " .. (out.stderr or ""), 200)
        callback(nil, ("%s is not eca: --version printed %q\nCheck the option cmd"):format(program(), said))
      end
    end)
  end)
  if not ok then callback(nil, ("cannot run %s: %s\nCheck the option cmd"):format(program(), text.line(err, 200))) end
end

local function on_problem(message)
  M.log("plugin: the daemon " .. message)
  -- Show the user each kind of problem once; the log has all of them.
  local key = message:sub(1, 60)
  if not reported[key] then
    reported[key] = true
    text.warn("the daemon " .. text.line(message, 300) .. "\nThe session continues; :Eca log has the details")
  end
end

local function on_exit(client, code, signal)
  if client ~= M.client then return end
  local asked, starting = client.stop_requested, M.state == "starting"
  M.client, M.state, M.tasks, M.jobs = nil, "stopped", {}, {}
  if asked then
    emit("ended", nil)
    return
  end
  local cause = signal ~= 0 and ("was killed by signal %d"):format(signal) or ("ended with code %d"):format(code)
  if starting then
    fail(("%s server %s while it started"):format(program(), cause) .. last_stderr_line() .. restart_hint)
    return
  end
  M.problem = ("the daemon %s"):format(cause)
    .. last_stderr_line()
    .. "\nThe next prompt starts it again; :Eca log shows its log"
  M.log("plugin: " .. M.problem)
  text.error(M.problem)
  emit("ended", M.problem)
end

local function folder(path) return { uri = vim.uri_from_fname(path), name = vim.fs.basename(path) } end

local function initialize(client, version)
  local params = {
    processId = vim.uv.os_getpid(),
    clientInfo = { name = "eca-neovim", version = M.version },
    capabilities = {
      codeAssistant = {
        chat = true,
        rewrite = true,
        editor = { diagnostics = true, definition = true, references = true },
        chatCapabilities = { askQuestion = true, search = true },
      },
    },
    workspaceFolders = vim.tbl_map(folder, M.folders),
  }
  client:request("initialize", params, function(err, result)
    if client ~= M.client then return end
    if err and client.alive then
      client.stop_requested = true
      M.client = nil
      client:kill("sigkill")
      local why = err.late and "the daemon did not answer within %d s after its start"
        or "the daemon refused to start a session: " .. text.line(err.message, 300)
      fail(why:format(config.options.start_timeout / 1000) .. last_stderr_line() .. restart_hint)
      return
    elseif err then
      return -- on_exit reports it
    end
    result = type(result) == "table" and result or {}
    M.info = { version = version, name = program() }
    M.session.welcome = result.chatWelcomeMessage
    M.state, M.problem = "running", nil
    client:notify("initialized")
    local callbacks = waiting
    waiting = {}
    emit("ready")
    for _, callback in ipairs(callbacks) do
      callback(true)
    end
  end, config.options.start_timeout)
end

local function spawn(version)
  M.folders = config.roots()
  M.session, M.servers, M.tasks, stderr, reported = {}, {}, {}, {}, {}
  local cmd = vim.list_extend({}, config.options.cmd)
  cmd[#cmd + 1] = "server"
  vim.list_extend(cmd, config.options.args)
  local client, err
  client, err = rpc.start({
    cmd = cmd,
    env = config.options.env,
    cwd = M.folders[1],
    on_notification = function(method, params)
      local handler = notifications[method]
      if handler then handler(params) end
    end,
    on_request = function(id, method, params)
      local handler = requests[method]
      if not handler then
        client:refuse(id, -32601, "the editor has no " .. method)
        return
      end
      local ok, failure = xpcall(handler, debug.traceback, params, function(result) client:respond(id, result) end, id)
      if not ok then
        client:refuse(id, -32603, text.line(failure, 300))
        error(failure, 0)
      end
    end,
    on_problem = on_problem,
    on_stderr = function(chunk)
      stderr[#stderr + 1] = chunk
      if #stderr > 50 then table.remove(stderr, 1) end
      M.log(chunk)
    end,
    on_exit = function(code, signal) on_exit(client, code, signal) end,
  })
  if not client then
    fail(("cannot start %s: %s\nCheck the option cmd, then :Eca restart"):format(table.concat(cmd, " "), err))
    return
  end
  M.client = client
  initialize(client, version)
end

-- Starts the daemon unless it runs, then calls callback(ok).
function M.start(callback)
  callback = callback or function() end
  if M.state == "running" then
    callback(true)
    return
  end
  waiting[#waiting + 1] = callback
  if M.state == "starting" then return end
  M.state = "starting"
  local attempt = {}
  M.attempt = attempt
  M.check_program(function(version, reason)
    if M.attempt ~= attempt then return end -- restarted meanwhile
    if version then
      spawn(version)
    else
      fail(reason)
    end
  end)
end

-- Stops the daemon, by force if it does not end within `wait` milliseconds.
function M.stop(wait)
  local client = M.client
  if not client or client.stop_requested then return end
  client.stop_requested = true
  client:request("shutdown", nil, function() end, 5000)
  client:notify("exit")
  if not vim.wait(wait or 3000, function() return M.client ~= client end, 10) then
    M.log("plugin: the daemon did not end when asked to, and is killed")
    client:kill("sigkill")
    on_exit(client, 0, 9)
  end
end

function M.restart(callback)
  M.stop()
  M.state = "stopped"
  M.start(callback)
end

-- Sends a request, starting the daemon first if need be. callback(err, result); errors are also shown, unless
-- callback returns true for them.
function M.request(method, params, callback)
  M.start(function(ok)
    if not ok then
      callback({ message = M.problem }, nil)
      return
    end
    M.client:request(method, params, function(err, result)
      if not callback(err, result) and err then
        local remedy = err.late and "\nIf that stays so, :Eca restart ends and starts it" or ""
        text.error(("%s failed: %s"):format(method, text.line(err.message or "unknown error", 400)) .. remedy)
      end
    end, config.options.request_timeout)
  end)
end

function M.notify(method, params)
  if M.client and M.state == "running" then
    M.client:notify(method, params)
    return true
  end
  text.warn("the daemon is not running\n:Eca restart starts it")
  return false
end

-- Adds a folder to the workspace, for tabs with their own directory.
function M.add_folder(path)
  path = vim.fs.normalize(path)
  if M.state ~= "running" then return end
  for _, root in ipairs(M.folders) do
    if path == root or vim.startswith(path, root:gsub("/$", "") .. "/") then return end
  end
  M.folders[#M.folders + 1] = path
  local added = { folder(path) }
  M.client:notify("workspace/didChangeWorkspaceFolders", { event = { added = added, removed = vim.empty_dict() } })
  text.notify(("%s is a folder of the workspace now"):format(text.path(path)))
end

M.on("$/showMessage", function(params)
  local levels = { error = vim.log.levels.ERROR, warning = vim.log.levels.WARN }
  text.notify(tostring(params.message), levels[params.type] or vim.log.levels.INFO)
end)

M.on("$/progress", function(params)
  M.tasks[params.taskId or ""] = params.type == "start" and text.line(params.title, 60) or nil
  vim.cmd.redrawstatus({ bang = true })
end)

M.on("tool/serverUpdated", function(params)
  local before = M.servers[params.name]
  M.servers[params.name] = params
  if params.status == "failed" and not (before and before.status == "failed") then
    text.warn(
      ("the MCP server %s failed: %s\n:Eca mcp"):format(text.line(params.name, 60), text.line(params.error, 300))
    )
  elseif params.status == "requires-auth" and not (before and before.status == "requires-auth") then
    text.warn(("the MCP server %s needs a login\n:Eca mcp"):format(text.line(params.name, 60)))
  end
end)

M.on("tool/serverRemoved", function(params) M.servers[params.name] = nil end)

M.on("providers/updated", function(params)
  local status = (params.auth or {}).status
  if params.id == M.login_pending and (status == "authenticated" or status == "expiring") then
    M.login_pending = nil
    M.logged_in(params.id)
  end
end)

function M.logged_in(provider)
  text.notify(("logged in to %s\n:Eca model chooses one of its models"):format(text.line(provider, 60)))
end

M.on("jobs/updated", function(params)
  M.jobs = params.jobs or {}
  vim.cmd.redrawstatus({ bang = true })
end)

return M
