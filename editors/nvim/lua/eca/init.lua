-- eca in Neovim. `setup` is optional: the command :Eca works without it.
local M = {}

-- Sets options (`:help eca-options`).
function M.setup(options)
  require("eca.config").setup(options)
  if require("eca.config").options.inline.auto then M.load() end
end

local loaded = false

-- Loads all modules; :Eca calls it.
function M.load()
  if loaded then return end
  loaded = true
  require("eca.view").highlights()
  vim.treesitter.language.register("markdown", "eca-chat")
  require("eca.editor")
  require("eca.ui")
  require("eca.inline").setup()
  local group = vim.api.nvim_create_augroup("eca", { clear = true })
  vim.api.nvim_create_autocmd("ColorScheme", { group = group, callback = require("eca.view").highlights })
  vim.api.nvim_create_autocmd({ "TabEnter", "VimResized" }, {
    group = group,
    callback = vim.schedule_wrap(function() require("eca.decide").refresh() end),
  })
  vim.api.nvim_create_autocmd("VimLeavePre", {
    group = group,
    callback = function() require("eca.server").stop(1500) end,
  })
end

function M.command(args)
  M.load()
  require("eca.commands").run(args)
end

function M.command_complete(lead, line)
  M.load()
  return require("eca.commands").complete(lead, line)
end

-- The current activity of eca for a status line; empty until eca is used.
function M.statusline()
  if not loaded then return "" end
  local ui, text = require("eca.ui"), require("eca.text")
  local chat = ui.current() or ui.latest
  if not chat then return "" end
  local cost = (chat.usage or {}).sessionCost
  local model = require("eca.chat").setting(chat, "model")
  local parts = { "eca", ui.status(chat), model, cost and ("$" .. cost) }
  return text.status(
    table.concat(
      vim.tbl_filter(
        function(part) return part ~= nil and part ~= false end,
        { parts[1], parts[2], parts[3] or false, parts[4] or false }
      ),
      " · "
    )
  )
end

-- Ghost text at the cursor: ask for it, and accept it. `accept_completion` returns false if none is shown.
function M.complete()
  M.load()
  require("eca.inline").complete()
end

function M.accept_completion()
  M.load()
  return require("eca.inline").accept()
end

return M
