-- The tests of the plugin. This Neovim drives another, which has the plugin, by what its user types:
--
--   ECA=/path/to/eca WIRE=http://127.0.0.1:PORT AGE=/path/to/nvim.test \
--     nvim --headless --clean -l tests/run.lua [part of a name]
--
-- Each test prints "ok NAME", or "not ok NAME" and why. The daemon is the real one, with the script in tape.yaml as its
-- model, or fake.lua, which misbehaves. work.lua needs WIRE, a provider with the script in wire.yaml, and AGE, the test
-- program of this folder, which makes chats old.
local here = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h")
local only = arg and arg[1]
local eca = assert(vim.env.ECA, "ECA is not set: the path of the program")
local nvim = vim.env.NVIM_PROGRAM or vim.v.progpath
local limit = 60000 -- milliseconds for what takes a fraction of a second

local failed = 0
local Editor = {}
Editor.__index = Editor

local function write(path, content)
  local file = assert(io.open(path, "wb"))
  file:write(content)
  file:close()
end

local function read(path)
  local file = io.open(path, "rb")
  if file then
    local content = file:read("*a")
    file:close()
    return content
  end
end

-- The parts of a user's Neovim that a test needs to see or to answer: notices, choices, inputs, what is opened.
local stubs = [[
  local plugin, options = ...
  vim.opt.rtp:prepend(plugin)
  vim.o.lines, vim.o.columns = 50, 160
  vim.cmd.runtime("plugin/eca.lua")
  _G.said, _G.choices = {}, {}
  vim.g.typed = 0
  vim.keymap.set({ "n", "i", "x", "s", "c" }, "<F12>", "<Cmd>let g:typed += 1<CR>")
  vim.notify = function(message) table.insert(said, message) end
  vim.ui.select = function(items, opts, done)
    local pattern = table.remove(choices, 1)
    for _, item in ipairs(items) do
      if pattern and opts.format_item(item):find(pattern) then return done(item) end
    end
    table.insert(said, "not offered: " .. tostring(pattern))
  end
  vim.ui.input = function(_, done) done(table.remove(choices, 1)) end
  vim.ui.open = function(what) table.insert(said, "opened " .. what) end
  require("eca").setup(options)
]]

-- A Neovim with the plugin in a workspace of its own, or in that of another editor.
local function editor(options, like)
  local self = setmetatable({ root = like and like.root }, Editor)
  if not like then
    self.root = ("%s/%d"):format(vim.uv.fs_realpath(vim.fs.dirname(vim.fn.tempname())), vim.uv.hrtime())
    vim.fn.mkdir(self.root .. "/ws", "p")
    write(self.root .. "/ws/old.txt", "first line\nsecond\nthird\n")
    write(self.root .. "/ws/with space.txt", "x\n")
  end
  self.ws = self.root .. "/ws"
  local models = { m = vim.empty_dict(), n = vim.empty_dict() }
  local config = options.config
    or {
      providers = { tape = { api = "cassette", url = here .. "/tape.yaml", models = models } },
      defaultModel = "tape/m",
      completion = { model = "tape/m" },
      chat = { title = false },
      fetchModels = false,
    }
  if options.mcp then config.mcpServers = { sh = { command = nvim, args = { "-l", here .. "/fake.lua", "mcp" } } } end
  options = vim.tbl_extend("keep", { cmd = options.cmd or { eca } }, options)
  options.config, options.mcp = nil, nil
  self.channel = vim.fn.jobstart({ nvim, "--embed", "--headless", "--clean", "-n" }, {
    rpc = true,
    cwd = self.ws,
    env = {
      HOME = self.root,
      XDG_CONFIG_HOME = self.root .. "/config",
      XDG_STATE_HOME = self.root .. "/state",
      XDG_CACHE_HOME = self.root .. "/cache",
      XDG_DATA_HOME = self.root .. "/data",
      OLLAMA_API_URL = "http://127.0.0.1:1",
      ECA_CONFIG = vim.json.encode(config),
      TERM = "dumb",
    },
  })
  self:lua(stubs, vim.fs.dirname(here), options)
  return self
end

function Editor:lua(code, ...) return vim.rpcrequest(self.channel, "nvim_exec_lua", code, { ... }) end

-- The next choices (patterns) and inputs of the user.
function Editor:choose(...) self:lua("_G.choices = { ... }", ...) end

-- The text of the current chat.
function Editor:chat()
  return self:lua([[
    local chat = require("eca.ui").current() or require("eca.ui").latest
    if not chat then return "" end
    chat.view:flush()
    return table.concat(vim.api.nvim_buf_get_lines(chat.view.buf, 0, -1, false), "\n")
  ]])
end

-- The bar above the current chat.
function Editor:bar()
  return self:lua([[
    vim.g.statusline_winid = vim.fn.bufwinid(require("eca.ui").latest.view.buf)
    return require("eca.ui").bar()
  ]])
end

-- Title and lines of the float; may be empty.
function Editor:float()
  return self:lua([[
    for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
      local c = vim.api.nvim_win_get_config(win)
      if c.relative ~= "" and c.title then
        local lines = vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(win), 0, -1, false)
        return c.title[1][1] .. "\n" .. table.concat(lines, "\n")
      end
    end
    return ""
  ]])
end

function Editor:said() return self:lua([[return table.concat(said, "\n")]]) end

local function await(what, condition, detail)
  if not vim.wait(limit, condition, 20) then
    error("waited for " .. what .. (detail and (":\n" .. detail()) or ""), 0)
  end
end

-- Types keys; they have taken effect when it returns.
function Editor:type(keys)
  local typed = self:lua("return vim.g.typed")
  vim.rpcrequest(self.channel, "nvim_input", keys .. "<F12>")
  await("the keys " .. keys, function() return self:lua("return vim.g.typed") > typed end)
  return self
end

function Editor:shows(piece)
  await(
    ("%q in the chat"):format(piece),
    function() return self:chat():find(piece, 1, true) end,
    function() return self:chat() .. "\nnotices: " .. self:said() end
  )
end

-- A notice; a long one is in the chat.
function Editor:says(piece)
  local function notices() return (self:said() .. "\n" .. self:chat()) end
  await(("the notice %q"):format(piece), function() return notices():find(piece, 1, true) end, notices)
end

function Editor:asks(piece)
  await(
    ("%q in the float"):format(piece),
    function() return self:float():find(piece, 1, true) end,
    function() return self:float() .. "\n" .. self:chat() .. "\nnotices: " .. self:said() end
  )
end

function Editor:idle()
  await(
    "the end of the turn",
    function() return self:lua([[local c = require("eca.ui").latest; return c ~= nil and not c.running]]) end,
    function() return self:chat() end
  )
end

-- Stops the turn as a user does. Neovim that is busy takes CTRL-C for an interrupt and drops the keys that wait, so a
-- user who sees no effect presses it again.
function Editor:stop()
  self:type("<Esc>")
  await("the turn to stop", function()
    vim.rpcrequest(self.channel, "nvim_input", "<C-c>")
    return vim.wait(2000, function() return self:lua([[return not require("eca.ui").latest.running]]) end, 20)
  end, function() return self:bar() .. "\n" .. self:chat() end)
end

-- Types a prompt and sends it.
function Editor:prompt(words)
  self:type("<Esc>"):lua([[vim.cmd("Eca")]])
  self:type("ddi" .. words:gsub("<", "<lt>") .. "<CR><Esc>")
  await(
    "the prompt to be sent",
    function()
      return self:lua([[
      local chat = require("eca.ui").latest
      return vim.api.nvim_get_mode().mode == "n"
        and table.concat(vim.api.nvim_buf_get_lines(chat.prompt, 0, -1, false)) == ""
    ]])
    end
  )
  return self
end

function Editor:file(name) return read(self.ws .. "/" .. name) end

function Editor:close()
  vim.fn.jobstop(self.channel)
  vim.fn.jobwait({ self.channel }, 10000)
end

local function contains(where, piece)
  if not where:find(piece, 1, true) then error(("%q is missing in:\n%s"):format(piece, where), 2) end
end

local function lacks(where, piece)
  if where:find(piece, 1, true) then error(("%q must not be in:\n%s"):format(piece, where), 2) end
end

local function equal(got, want)
  if not vim.deep_equal(got, want) then error(("got %s, want %s"):format(vim.inspect(got), vim.inspect(want)), 2) end
end

-- Runs a test with an editor.
local function test(name, options, fn)
  if only and not name:find(only, 1, true) then return end
  local e
  local began = vim.uv.hrtime()
  local ok, err = xpcall(function()
    e = editor(options)
    fn(e)
  end, tostring)
  if e then
    pcall(e.close, e)
    vim.fn.delete(e.root, "rf")
  end
  failed = failed + (ok and 0 or 1)
  local why = ok and "" or ("\n  " .. err:gsub("\n", "\n  "))
  local seconds = (vim.uv.hrtime() - began) / 1e9
  io.stdout:write(("%s %s (%.1f s)%s\n"):format(ok and "ok" or "not ok", name, seconds, why))
  io.stdout:flush()
end

local t =
  { test = test, editor = editor, await = await, contains = contains, lacks = lacks, equal = equal, here = here }
function t.fake(kind) return { nvim, "-l", here .. "/fake.lua", kind } end
for _, name in ipairs({ "parts", "day", "work", "faults" }) do
  assert(loadfile(here .. "/" .. name .. ".lua"))(t)
end
io.stdout:write(failed == 0 and "all passed\n" or ("%d failed\n"):format(failed))
os.exit(failed == 0 and 0 or 1)
