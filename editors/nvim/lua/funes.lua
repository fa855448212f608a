-- funes-ls in Neovim 0.7 and up: starts the language server for files, and gives four commands.
--
--   :FunesRecall why did we drop the cache    passages of sessions, best first, while they come
--   :FunesWhy                                 who wrote the line you are on, or a selection, and why
--   :FunesLens symbols                        lenses at each function; without a word: off, or on
--   :FunesSessions [words of a title]         sessions, newest first
--
-- In their lists <CR> opens the turn under the cursor as a read-only `funes:` document; there it
-- follows a line that says `funes get`.

local M = {}

M.options = {
  cmd = { "funes-ls" },
  root_markers = { ".git", ".hg", "pyproject.toml", "package.json", "Cargo.toml", "go.mod" },
  code_lens = true,
  settings = { funes = vim.empty_dict() },
}

local modern = vim.fn.has("nvim-0.11") == 1
local only_id -- the client, where vim.lsp.start is not there yet
local streams = {} -- partial result token -> what takes the answer so far
local places = {} -- list buffer -> line -> the document to open
local last_token = 0

local function tell(text)
  vim.notify("funes: " .. text, vim.log.levels.WARN)
end

local function clients_of(buffer)
  if vim.lsp.get_clients then
    return vim.lsp.get_clients({ name = "funes", bufnr = buffer })
  end
  local all = buffer and vim.lsp.buf_get_clients(buffer) or vim.lsp.get_active_clients()
  return vim.tbl_filter(function(client)
    return client.name == "funes"
  end, vim.tbl_values(all))
end

-- Any running client will do: sessions are not bound to a folder.
local function any_client()
  return clients_of(vim.api.nvim_get_current_buf())[1] or clients_of(nil)[1]
end

local function request(method, params, take)
  local client = any_client()
  if not client then
    return tell("the server does not run; open a file first, or see :checkhealth vim.lsp")
  end
  local function answer(err, result)
    if err then
      local hint = type(err.data) == "table" and err.data.hint
      return tell(err.message .. (type(hint) == "string" and hint ~= "" and " " .. hint or ""))
    end
    take(result)
  end
  if modern then
    client:request(method, params, answer)
  else
    client.request(method, params, answer)
  end
end

-- Partial results come as $/progress under the token of the request; the rest is work done.
local function on_progress(err, params, ...)
  local take = type(params) == "table" and streams[params.token]
  if take then
    return take(params.value)
  end
  return vim.lsp.handlers["$/progress"](err, params, ...)
end

local function quoted(name)
  return (name:gsub("[^%w%-._~]", function(byte)
    return ("%%%02X"):format(byte:byte())
  end))
end

local function turn_uri(session, turn)
  return ("funes:/turn/%s/%s.md"):format(quoted(session), quoted(turn))
end

local function session_uri(session)
  return ("funes:/session/%s.md"):format(quoted(session))
end

local function show_list(title, lines, opens)
  local name = "funes-list:" .. title
  local buffer = vim.fn.bufnr("^" .. vim.fn.escape(name, "*?[]{}\\ ") .. "$")
  if buffer < 0 then
    buffer = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(buffer, name)
    vim.api.nvim_buf_set_option(buffer, "filetype", "funes")
    vim.keymap.set("n", "<CR>", function()
      M.open(places[buffer][vim.fn.line(".")])
    end, { buffer = buffer, desc = "Open the turn" })
  end
  if vim.fn.bufwinid(buffer) < 0 then
    vim.cmd("botright split")
    vim.api.nvim_win_set_buf(0, buffer)
  end
  places[buffer] = opens
  vim.api.nvim_buf_set_option(buffer, "modifiable", true)
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  vim.api.nvim_buf_set_option(buffer, "modifiable", false)
  return buffer
end

local function show_hits(query, answer, pending)
  local lines, opens = {}, {}
  for _, hit in ipairs(answer.hits) do
    local uri = turn_uri(hit.session_id, hit.turn_uuid)
    local place = hit.cwd ~= "" and hit.cwd or hit.workdir
    local head = ("%d. %s %s %s"):format(hit.rank, (hit.ts or ""):sub(1, 10), hit.harness, place)
    for _, line in ipairs({ head, unpack(vim.split(hit.text, "\n"), 1, 6) }) do
      table.insert(lines, #lines == 0 and line or (line == head and line or "    " .. line))
      opens[#lines] = uri
    end
  end
  if #lines == 0 then
    lines = { pending and "Looking …" or "Nothing was found." }
  end
  show_list(query, lines, opens)
end

--- Shows passages that answer a question: those found by words at once, then all in their order.
function M.recall(query)
  last_token = last_token + 1
  local token = "funes-recall-" .. last_token
  streams[token] = function(value)
    show_hits(query, value, true)
  end
  request("funes/recall", { query = query, partialResultToken = token }, function(answer)
    streams[token] = nil
    show_hits(query, answer, false)
  end)
end

local function show_sessions(title, sessions)
  local lines, opens = {}, {}
  for _, one in ipairs(sessions) do
    local ended = type(one.ended_us) == "number" and os.date("%Y-%m-%d", one.ended_us / 1000000)
    table.insert(lines, ("%s %s %s  %s"):format(ended or "", one.harness, one.cwd, one.title))
    opens[#lines] = session_uri(one.session_id)
  end
  show_list(title, #lines > 0 and lines or { "No session is known." }, opens)
end

--- Shows sessions, newest first; `title` is words of their titles.
function M.sessions(title)
  request("funes/sessions", { title = title or "", limit = 200 }, function(answer)
    show_sessions("sessions " .. (title or ""), answer.sessions)
  end)
end

--- Opens a `funes:` document; `line`, from 0, is where reading begins.
function M.open(uri, line)
  if uri then
    vim.cmd("edit " .. vim.fn.fnameescape(uri))
    vim.b.funes_line = line
  end
end

-- Goes from a line of a document, such as "→ funes get …", to what it is about.
local function follow(uri)
  request("textDocument/definition", {
    textDocument = { uri = uri },
    position = { line = vim.fn.line(".") - 1, character = 0 },
  }, function(place)
    if type(place) == "table" and place.uri then
      M.open(place.uri, place.range.start.line)
    end
  end)
end

-- What a lens or an action does is a document; an old Neovim cannot be told to show one.
local function run_command(command)
  request("workspace/executeCommand", {
    command = command.command,
    arguments = command.arguments,
  }, function(answer)
    if type(answer) == "table" and answer.uri and not answer.shown then
      M.open(answer.uri, answer.line)
    end
  end)
end

--- Shows who wrote lines (from 1, both included; without them that under the cursor) and why.
function M.why(first, last)
  first = first or vim.fn.line(".")
  run_command({
    command = "funes.whyLine",
    arguments = {
      {
        uri = vim.uri_from_bufnr(0),
        range = {
          start = { line = first - 1, character = 0 },
          ["end"] = { line = last or first, character = 0 },
        },
      },
    },
  })
end

-- Fills a buffer named by a `funes:` address; nothing of it is written anywhere. An old Neovim
-- takes the address for the name of a file and puts a folder in front of it.
local function read_document(event)
  local buffer = event.buf
  local uri = event.match:match("funes:/.*")
  vim.api.nvim_buf_set_option(buffer, "buftype", "nofile")
  vim.api.nvim_buf_set_option(buffer, "swapfile", false)
  request("funes/document", { uri = uri }, function(answer)
    vim.api.nvim_buf_set_option(buffer, "modifiable", true)
    vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(answer.text, "\n"))
    vim.api.nvim_buf_set_option(buffer, "modifiable", false)
    vim.api.nvim_buf_set_option(buffer, "readonly", true)
    vim.api.nvim_buf_set_option(buffer, "filetype", "markdown")
    if vim.api.nvim_get_current_buf() == buffer then
      vim.fn.cursor((vim.b[buffer].funes_line or answer.line or 0) + 1, 1)
    end
  end)
  vim.keymap.set("n", "<CR>", function()
    follow(uri)
  end, { buffer = buffer, desc = "Go to the turn" })
end

local function root_of(file)
  local folder = vim.fn.fnamemodify(file, ":p:h")
  local at = folder
  while true do
    for _, marker in ipairs(M.options.root_markers) do
      if vim.loop.fs_stat(at .. "/" .. marker) then
        return at
      end
    end
    local above = vim.fn.fnamemodify(at, ":h")
    if above == at then
      return folder
    end
    at = above
  end
end

local function refresh_lenses(buffer)
  if not M.options.code_lens or #clients_of(buffer) == 0 then
    return
  end
  if modern then
    vim.lsp.codelens.refresh({ bufnr = buffer })
  elseif buffer == vim.api.nvim_get_current_buf() then
    vim.lsp.codelens.refresh()
  end
end

--- Turns lenses off, or on again; `where` is `off`, `file` or `symbols`.
function M.lens(where)
  request("workspace/executeCommand", {
    command = "funes.toggleCodeLens",
    arguments = where and where ~= "" and { where } or nil,
  }, function(answer)
    M.options.code_lens = answer.codeLens ~= "off"
    if M.options.code_lens then
      return refresh_lenses(vim.api.nvim_get_current_buf())
    end
    for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
      for _, client in ipairs(clients_of(buffer)) do
        vim.lsp.codelens.display({}, buffer, client.id)
        vim.lsp.codelens.save({}, buffer, client.id)
      end
    end
  end)
end

local function configuration(root)
  local capabilities = vim.lsp.protocol.make_client_capabilities()
  capabilities.experimental = { funes = { virtualDocuments = true } }
  return {
    name = "funes",
    cmd = M.options.cmd,
    root_dir = root,
    capabilities = capabilities,
    settings = M.options.settings,
    handlers = { ["$/progress"] = on_progress },
    commands = {
      ["funes.showRelated"] = run_command,
      ["funes.recallSelection"] = run_command,
      ["funes.whyLine"] = run_command,
    },
    on_attach = function(_, buffer)
      refresh_lenses(buffer)
    end,
  }
end

local function attach(buffer)
  local name = vim.api.nvim_buf_get_name(buffer)
  if name == "" or name:find("^%a[%w+.-]+:/") or name:find("funes:/", 1, true) or vim.bo[buffer].buftype ~= "" then
    return
  end
  -- One server for all projects: sessions are not bound to a folder.
  if vim.lsp.start then
    return vim.lsp.start(configuration(root_of(name)), {
      bufnr = buffer,
      reuse_client = function(client)
        return client.name == "funes"
      end,
    })
  end
  if not (only_id and vim.lsp.get_client_by_id(only_id)) then
    only_id = vim.lsp.start_client(configuration(root_of(name)))
  end
  if only_id then
    vim.lsp.buf_attach_client(buffer, only_id)
  end
end

local function make_commands()
  local command = vim.api.nvim_create_user_command
  command("FunesRecall", function(given)
    M.recall(given.args)
  end, { nargs = "+", desc = "Passages of sessions that answer a question" })
  command("FunesSessions", function(given)
    M.sessions(given.args)
  end, { nargs = "*", desc = "Sessions, newest first" })
  command("FunesWhy", function(given)
    M.why(given.line1, given.line2)
  end, { range = true, desc = "Who wrote this line, and why" })
  command("FunesLens", function(given)
    M.lens(given.args)
  end, {
    nargs = "?",
    complete = function()
      return { "off", "file", "symbols" }
    end,
    desc = "Lenses off or on, or where they are",
  })
end

--- Starts the server for every file that is opened from now on, and for those that are open.
--- `options` may hold `cmd`, `root_markers`, `code_lens` and `settings`.
function M.setup(options)
  M.options = vim.tbl_deep_extend("force", M.options, options or {})
  make_commands()
  local group = vim.api.nvim_create_augroup("funes", { clear = true })
  local function on(events, pattern, callback)
    vim.api.nvim_create_autocmd(events, { group = group, pattern = pattern, callback = callback })
  end
  on({ "BufReadPost", "BufNewFile", "BufWritePost" }, "*", function(event)
    attach(event.buf)
  end)
  on({ "BufWritePost" }, "*", function(event)
    refresh_lenses(event.buf)
  end)
  on("BufReadCmd", { "funes:/*", "*/funes:/*" }, read_document)
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) then
      attach(buffer)
    end
  end
end

return M
