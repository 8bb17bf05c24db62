if vim.g.loaded_eca then return end
vim.g.loaded_eca = true

if vim.fn.has("nvim-0.10") == 0 then
  vim.api.nvim_err_writeln("eca: this plugin needs Neovim 0.10 or newer: https://neovim.io")
  return
end

vim.api.nvim_create_user_command("Eca", function(args) require("eca").command(args) end, {
  nargs = "*",
  range = true,
  desc = "eca: chat with a coding assistant",
  complete = function(lead, line) return require("eca").command_complete(lead, line) end,
})
