package alias

// tools are the tools of this host with the names that mean exactly the same: those of earlier versions of Claude
// Code, and of Gemini CLI, Cursor, VS Code, Cline, opencode, Codex and the tools of model APIs. They are compared
// without case, _ and -.
var tools = map[string][]string{
	"Agent":           {"Task", "spawn_agent", "run_agent", "subagent"},
	"AskUserQuestion": {"ask_user", "ask_question", "ask_followup_question"},
	"Bash": {"BashTool", "shell", "shell_command", "run_shell_command", "run_command", "run_terminal_cmd", "run_terminal_command", "run_in_terminal",
		"execute_command", "execute_bash", "exec_command", "local_shell"},
	"Edit":          {"edit_file", "file_edit", "str_replace", "search_replace", "replace_string_in_file"},
	"Glob":          {"GlobTool", "glob_search", "glob_file_search", "find_files"},
	"Grep":          {"GrepTool", "grep_search", "grep_files", "search_file_content", "search_in_files", "ripgrep"},
	"EnterPlanMode": {"enter_plan"},
	"ExitPlanMode":  {"exit_plan", "present_plan"},
	"EnterWorktree": {"create_worktree"},
	"ExitWorktree":  {"leave_worktree"},
	"NotebookEdit":  {"edit_notebook", "edit_notebook_file", "NotebookEditCell"},
	"Read":          {"View", "view_file", "read_file", "read_text_file", "open_file", "file_read", "NotebookRead"},
	"TaskOutput":    {"BashOutput", "shell_output", "get_terminal_output"},
	"TaskStop":      {"KillShell", "KillBash", "KillTask", "stop_task"},
	"WebFetch":      {"fetch", "fetch_url", "url_fetch", "read_url", "fetch_webpage", "web_reader"},
	"WebSearch":     {"search_web", "google_web_search", "internet_search", "web_search_tool"},
	"Write":         {"write_file", "write_to_file", "file_write", "create_file"},
}

// former are names of tools that no longer exist, for rules alone: a call of them is another one today.
var former = map[string][]string{"Edit": {"MultiEdit"}, "Write": {"Replace"}}

// instead are names of tools of which none here does the same.
var instead = []struct {
	names []string
	substitute
}{
	{[]string{"MultiEdit"}, substitute{"Edit",
		`make one Edit call for each of the edits, {"file_path": "…", "old_string": "…", "new_string": "…"}. Several can be sent together, they are applied in order`}},
	{[]string{"LS", "list_directory", "list_dir", "list_files", "directory_tree"}, substitute{"Glob",
		`list the files of a directory with Glob {"pattern": "./*", "path": "DIR"}, or all it holds with Bash {"command": "ls -la DIR"}`}},
	{[]string{"str_replace_editor", "str_replace_based_edit_tool", "text_editor"}, substitute{"Edit",
		`for view call Read {"file_path": "…"}, for create Write {"file_path": "…", "content": "…"}, for str_replace and insert Edit {"file_path": "…", "old_string": "…", "new_string": "…"}`}},
	{[]string{"replace"}, substitute{"Edit",
		`replace a part of a file with Edit {"file_path": "…", "old_string": "…", "new_string": "…"}, a whole file with Write {"file_path": "…", "content": "…"}`}},
	{[]string{"apply_patch", "apply_diff", "patch", "replace_in_file"}, substitute{"Edit",
		`make one Edit call for each place, {"file_path": "…", "old_string": "…", "new_string": "…"}; Write {"file_path": "…", "content": "…"} makes a new file`}},
	{[]string{"read_many_files", "read_multiple_files"}, substitute{"Read",
		`make one Read call for each file, {"file_path": "…"}. They can be sent together`}},
	{[]string{"search", "search_files", "file_search", "codebase_search", "semantic_search"}, substitute{"Grep",
		`search contents with Grep {"pattern": "REGEX"}, names with Glob {"pattern": "**/*NAME*"}`}},
	{[]string{"delete_file", "remove_file"}, substitute{"Bash", `call Bash {"command": "rm FILE"}`}},
	{[]string{"move_file", "rename_file"}, substitute{"Bash", `call Bash {"command": "mv FROM TO"}`}},
	{[]string{"create_directory", "make_directory"}, substitute{"Write", `Write makes the directories of a new file; an empty one is made by Bash {"command": "mkdir -p DIR"}`}},
	{[]string{"write_stdin", "send_input"}, substitute{"Bash", `a command gets no input: pass it in the line, as in Bash {"command": "printf 'y\\n' | PROGRAM"}`}},
}

// What several tools are given alike.
var (
	ignored = Argument{}
	path    = Argument{Field: "path"}
	pattern = Argument{Field: "pattern"}
	file    = Argument{Field: "file_path"}
	task    = Argument{Field: "task_id"}
	dir     = Argument{Instead: "begin the command with cd DIR &&"}
	millis  = Argument{Instead: "give timeout, in milliseconds"}
	perFile = Argument{Instead: "make one call for each file"}
)

// arguments are, by tool, the arguments of other tools that models give it. Names that differ from an argument in
// case, _ and - alone need no entry.
var arguments = map[string]map[string]Argument{
	"Bash": {
		"cmd": {Field: "command"}, "script": {Field: "command"}, "command_line": {Field: "command"},
		"timeout_ms": {Field: "timeout"}, "timeout_seconds": millis, "timeout_secs": millis,
		"command_description": {Field: "description"}, "explanation": {Field: "description"},
		"background": {Field: "run_in_background"}, "is_background": {Field: "run_in_background"},
		"cwd": dir, "workdir": dir, "working_directory": dir, "directory": dir, "dir_path": dir,
	},
	"Edit": {
		"path": file, "filename": file, "file": file, "absolute_path": file, "target_file": file,
		"old_str": {Field: "old_string"}, "old_text": {Field: "old_string"}, "search": {Field: "old_string"},
		"new_str": {Field: "new_string"}, "new_text": {Field: "new_string"}, "replace": {Field: "new_string"},
		"allow_multiple": {Field: "replace_all"}, "expected_replacements": {Instead: "give replace_all, true to replace every occurrence"},
		"edits":       {Instead: "make one Edit call for each of them, with old_string and new_string"},
		"description": ignored, "instruction": ignored, "explanation": ignored,
	},
	"Glob": {
		"query": pattern, "glob": pattern, "glob_pattern": pattern, "file_pattern": pattern,
		"directory": path, "dir_path": path, "target_directory": path, "cwd": path,
		"description": ignored, "explanation": ignored,
	},
	"Grep": {
		"query": pattern, "regex": pattern, "regexp": pattern, "search": pattern, "search_pattern": pattern, "search_term": pattern,
		"include": {Field: "glob"}, "include_pattern": {Field: "glob"}, "file_pattern": {Field: "glob"}, "glob_pattern": {Field: "glob"},
		"exclude": {Instead: `give glob with a ! before the pattern, as in "!*.min.js"`}, "exclude_pattern": {Instead: `give glob with a ! before the pattern, as in "!*.min.js"`},
		"file_path": path, "file": path, "directory": path, "dir_path": path, "target_directory": path,
		"file_type": {Field: "type"}, "mode": {Field: "output_mode"}, "limit": {Field: "head_limit"}, "max_results": {Field: "head_limit"},
		"ignore_case": {Field: "-i"}, "case_insensitive": {Field: "-i"}, "case_sensitive": {Instead: "case counts unless -i is true"},
		"after_context": {Field: "-A"}, "before_context": {Field: "-B"}, "context_lines": {Field: "-C"}, "line_numbers": {Field: "-n"},
		"-l": {Field: "output_mode", For: "files_with_matches"}, "-c": {Field: "output_mode", For: "count"},
		"-r": ignored, "recursive": ignored, "description": ignored, "explanation": ignored,
	},
	"NotebookEdit": {
		"path": {Field: "notebook_path"}, "file_path": {Field: "notebook_path"},
		"source": {Field: "new_source"}, "content": {Field: "new_source"}, "mode": {Field: "edit_mode"},
		"cell_number": {Instead: `give cell_id as Read names the cell, or "cell-2" for the third`}, "cell_index": {Instead: `give cell_id as Read names the cell, or "cell-2" for the third`},
	},
	"Read": {
		"path": file, "filename": file, "file": file, "absolute_path": file, "target_file": file, "notebook_path": file,
		"length": {Field: "limit"}, "max_lines": {Field: "limit"}, "num_lines": {Field: "limit"},
		"start_line": {Field: "offset"}, "line_start": {Field: "offset"},
		"end_line": {Instead: "give offset, the first line, and limit, the number of lines"}, "view_range": {Instead: "give offset, the first line, and limit, the number of lines"},
		"files": perFile, "paths": perFile, "file_paths": perFile,
		"description": ignored, "explanation": ignored,
	},
	"TaskOutput": {
		"shell_id": task, "bash_id": task, "id": task,
		"filter": {Instead: "all new output is given, leave it out"},
	},
	"WebFetch": {
		"uri": {Field: "url"}, "link": {Field: "url"}, "address": {Field: "url"}, "question": {Field: "prompt"}, "query": {Field: "prompt"},
		"start_index": {Field: "offset"}, "max_length": ignored, "format": ignored, "timeout": ignored, "description": ignored,
		"urls": {Instead: "make one call for each URL"},
	},
	"WebSearch": {
		"q": {Field: "query"}, "search_term": {Field: "query"}, "search_query": {Field: "query"}, "explanation": ignored,
		"num_results": {Field: "max_results"}, "count": {Field: "max_results"}, "limit": {Field: "max_results"},
		"include_domains": {Field: "allowed_domains"}, "exclude_domains": {Field: "blocked_domains"},
	},
	"TaskStop": {"shell_id": task, "bash_id": task, "id": task},
	"Write": {
		"path": file, "filename": file, "file": file, "absolute_path": file, "target_file": file,
		"text": {Field: "content"}, "contents": {Field: "content"}, "file_text": {Field: "content"}, "file_content": {Field: "content"},
		"description": ignored, "explanation": ignored,
	},
}
