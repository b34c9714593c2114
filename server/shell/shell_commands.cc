#include "server/shell/shell_commands.h"

#include <fmt/core.h>

#include <algorithm>

#include "models/registry/registry.h"
#include "server/load/load_table.h"
#include "server/shell/statement_help.h"

namespace sluice::server {
namespace {

using Outcome = ShellSession::Outcome;

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

Status WrongArgument(std::string_view command, std::string_view allowed) {
  return SyntaxError(fmt::format("{} takes {}", command, allowed));
}

// Users often end names with a semicolon, as they end statements.
std::string_view WithoutSemicolon(std::string_view text) {
  text = Trimmed(text);
  while (text.ends_with(';')) {
    text = Trimmed(text.substr(0, text.size() - 1));
  }
  return text;
}

// Shows the answers to several queries; those without rows are left out, except for the first.
Outcome ShowTable(ShellSession& session, SqlDialect dialect, std::string_view name) {
  const Outcome columns = session.Show(ListColumns(dialect, name));
  if (columns != Outcome::kOk) {
    return columns;
  }
  const auto indexes = session.Ask(ListIndexes(dialect, name));
  return indexes.ok() && !indexes->empty() ? session.Show(ListIndexes(dialect, name))
                                           : Outcome::kOk;
}

Outcome List(ShellSession& session, std::string_view pattern, bool only_tables) {
  const auto dialect = session.Dialect();
  if (!dialect.ok()) {
    return session.Fail(dialect.status());
  }
  return session.Show(ListTables(*dialect, WithoutSemicolon(pattern), only_tables));
}

Outcome Describe(ShellSession& session, std::string_view arguments) {
  const std::string_view name = WithoutSemicolon(arguments);
  if (name.empty() || name.find_first_of("*?") != std::string_view::npos) {
    return List(session, name, false);
  }
  const auto dialect = session.Dialect();
  if (!dialect.ok()) {
    return session.Fail(dialect.status());
  }
  const auto table = session.Ask(FindTable(*dialect, name));
  if (!table.ok()) {
    return session.Fail(table.status());
  }
  if (!table->empty()) {
    return ShowTable(session, *dialect, name);
  }
  const std::string describe = fmt::format("DESCRIBE MODEL {}", name);
  if (session.Ask(describe).ok()) {
    return session.Show(describe);
  }
  std::vector<std::string> names;
  const auto tables = session.Ask(TableNames(*dialect));
  const auto models = session.Ask("SHOW MODELS");
  for (const auto* rows : {&tables, &models}) {
    for (const auto& row : rows->ok() ? **rows : ShellSession::Rows()) {
      names.push_back(row.front());
    }
  }
  const auto nearest = NearestName(name, names);
  Status missing = NotFound(fmt::format("there is no table, view or model '{}'", name));
  return session.Fail(
      std::move(missing).Hint(nearest ? fmt::format("did you mean '{}'?", *nearest) : ""));
}

Outcome ListTablesOnly(ShellSession& session, std::string_view arguments) {
  return List(session, arguments, true);
}

Outcome Models(ShellSession& session, std::string_view arguments) {
  const std::string_view name = WithoutSemicolon(arguments);
  return session.Show(name.empty() ? "SHOW MODELS" : fmt::format("SHOW MODEL {}", name));
}

Outcome Jobs(ShellSession& session, std::string_view arguments) {
  const std::string_view job = WithoutSemicolon(arguments);
  return session.Show(job.empty() ? "SHOW JOBS" : fmt::format("SHOW JOB {}", job));
}

// Reads on or off; "" toggles.
bool ReadSwitch(std::string_view text, bool* value) {
  if (text.empty()) {
    *value = !*value;
    return true;
  }
  *value = text == "on";
  return text == "on" || text == "off";
}

Outcome Timing(ShellSession& session, std::string_view arguments) {
  if (!ReadSwitch(Trimmed(arguments), &session.display().timing)) {
    return session.Fail(WrongArgument("\\timing", "on, off or nothing"));
  }
  session.Print(fmt::format("Timing is {}.\n", session.display().timing ? "on" : "off"));
  return Outcome::kOk;
}

Outcome Expand(ShellSession& session, std::string_view arguments) {
  const std::string_view word = Trimmed(arguments);
  Expanded& expanded = session.display().expanded;
  bool on = expanded != Expanded::kOff;
  if (word == "auto") {
    expanded = Expanded::kAuto;
    session.Print("Rows that are wider than the terminal are shown by their columns.\n");
    return Outcome::kOk;
  }
  if (!ReadSwitch(word, &on)) {
    return session.Fail(WrongArgument("\\x", "on, off, auto or nothing"));
  }
  expanded = on ? Expanded::kOn : Expanded::kOff;
  session.Print(fmt::format("Rows are shown by their {}.\n", on ? "columns" : "lines"));
  return Outcome::kOk;
}

Outcome Include(ShellSession& session, std::string_view arguments) {
  const std::vector<std::string> words = SplitArguments(arguments);
  if (words.size() != 1) {
    return session.Fail(WrongArgument("\\i", "one file"));
  }
  return session.Include(words.front());
}

// A path relative to the file that is being run.
Outcome IncludeRelative(ShellSession& session, std::string_view arguments) {
  const std::vector<std::string> words = SplitArguments(arguments);
  if (words.size() != 1) {
    return session.Fail(WrongArgument("\\ir", "one file"));
  }
  const size_t slash = session.file().rfind('/');
  const bool beside = slash != std::string::npos && !words.front().starts_with('/');
  return session.Include((beside ? session.file().substr(0, slash + 1) : "") + words.front());
}

Outcome Output(ShellSession& session, std::string_view arguments) {
  const std::string_view target = Trimmed(arguments);
  std::string file(target);
  if (!target.starts_with('|')) {
    const std::vector<std::string> words = SplitArguments(target);
    if (words.size() > 1) {
      return session.Fail(WrongArgument("\\o", "one file, |command, or nothing"));
    }
    file = words.empty() ? "" : words.front();
  }
  const Status set = session.SetOutput(file);
  return set.ok() ? Outcome::kOk : session.Fail(set);
}

Outcome SetDisplay(ShellSession& session, std::string_view arguments) {
  const std::vector<std::string> words = SplitArguments(arguments);
  Display& display = session.display();
  const std::string value = words.size() == 2 ? words[1] : "";
  if (words.size() == 2 && words[0] == "pager" && ReadSwitch(value, &display.pager)) {
    session.Print(fmt::format("The pager is {}.\n", display.pager ? "on" : "off"));
    return Outcome::kOk;
  }
  const auto format = ParseOutputFormat(value);
  if (words.size() == 2 && words[0] == "format" && format) {
    display.format = *format;
    session.Print(fmt::format("The format is {}.\n", value));
    return Outcome::kOk;
  }
  return session.Fail(WrongArgument("\\pset", "pager on|off, or format table|csv|json"));
}

Outcome Import(ShellSession& session, std::string_view arguments) {
  LoadOptions load;
  std::vector<std::string> names;
  std::vector<char> quotes;
  for (const std::string& word : SplitArguments(WithoutSemicolon(arguments), &quotes)) {
    if (word == "--append") {
      load.append = true;
    } else if (word == "--no-header") {
      load.has_header = false;
    } else if (word == "--lossy") {
      load.lossy = true;
    } else if (word.starts_with("--")) {
      return session.Fail(WrongArgument(".import", "--append, --no-header and --lossy, not " + word)
                              .Hint("sluice load --help lists more options, for the command line"));
    } else {
      names.push_back(word);
    }
  }
  if (names.size() != 2) {
    return session.Fail(WrongArgument(".import", "a file and a table"));
  }
  load.file = names[0];
  load.table = quotes.back() == '"' ? '"' + names[1] + '"' : names[1];
  return session.Load(load);
}

Outcome Help(ShellSession& session, std::string_view /*arguments*/) {
  std::string text;
  for (const ShellCommand& command : ShellCommands()) {
    const std::string head = fmt::format("{} {}", command.name, command.arguments);
    if (!command.doc.empty()) {
      text += fmt::format("  {:<31} {}\n", head, command.doc);
    }
  }
  session.Print(
      text +
      "A statement ends with ';' and may go over several lines; \\h shows some.\n"
      "Tab completes. Ctrl-C stops a running statement or clears the line; Ctrl-D ends.\n");
  return Outcome::kOk;
}

Outcome StatementHelpFor(ShellSession& session, std::string_view arguments) {
  const std::string_view topic = WithoutSemicolon(arguments);
  if (models::FindModelType(topic) != nullptr) {
    return session.Show(fmt::format("DESCRIBE MODEL TYPE {}", topic));
  }
  const auto help = StatementHelp(topic);
  if (!help.ok()) {
    return session.Fail(help.status());
  }
  session.Print(*help);
  return Outcome::kOk;
}

Outcome Quit(ShellSession& /*session*/, std::string_view /*arguments*/) {
  return Outcome::kExit;
}

}  // namespace

const std::vector<ShellCommand>& ShellCommands() {
  using Argument = CommandArgument;
  // Commands without a doc are alternative spellings.
  static const std::vector<ShellCommand> commands = {
      {"\\d",
       "[NAME]",
       "tables and views, or one's columns and indexes, or a model",
       Argument::kTable,
       {},
       Describe},
      {"\\dt",
       "[PATTERN]",
       "tables (c*, schema.*); also .tables",
       Argument::kTable,
       {},
       ListTablesOnly},
      {"\\dm", "[NAME]", "models, or the versions of one", Argument::kModel, {}, Models},
      {"\\dj", "[NUMBER]", "jobs, or one", Argument::kNone, {}, Jobs},
      {"\\h",
       "[STATEMENT|TYPE]",
       "how a statement is written; a model type's attributes",
       Argument::kTopic,
       {},
       StatementHelpFor},
      {"\\i",
       "FILE",
       "runs a file; \\ir: a path relative to the file that is running",
       Argument::kFile,
       {},
       Include},
      {"\\ir", "FILE", "", Argument::kFile, {}, IncludeRelative},
      {"\\o",
       "[FILE | |COMMAND]",
       "rows go there; without a name back here",
       Argument::kFile,
       {},
       Output},
      {".import",
       "[--append] FILE TABLE",
       "a CSV file becomes a table, or more of its rows",
       Argument::kFile,
       {},
       Import},
      {"\\timing", "[on|off]", "how long each statement took", Argument::kWord, "on off", Timing},
      {"\\x", "[on|off|auto]", "a line for each cell; auto: where the terminal is too narrow",
       Argument::kWord, "on off auto", Expand},
      {"\\pset", "pager on|off", "long answers go through PAGER, or do not", Argument::kWord,
       "pager format on off table csv json", SetDisplay},
      {"\\pset", "format FORMAT", "table, csv or json", Argument::kNone, {}, SetDisplay},
      {"\\?", "", "this list", Argument::kNone, {}, Help},
      {"\\q", "", "leaves; also exit", Argument::kNone, {}, Quit},
      {".tables", "", "", Argument::kTable, {}, ListTablesOnly},
      {".read", "", "", Argument::kFile, {}, Include},
      {".output", "", "", Argument::kFile, {}, Output},
      {".help", "", "", Argument::kNone, {}, Help},
      {".quit", "", "", Argument::kNone, {}, Quit},
      {".exit", "", "", Argument::kNone, {}, Quit},
  };
  return commands;
}

Outcome RunShellCommand(ShellSession& session, std::string_view line) {
  line = Trimmed(line);
  const size_t end = std::min(line.find_first_of(" \t;"), line.size());
  const std::string_view name = line.substr(0, end);
  for (const ShellCommand& command : ShellCommands()) {
    if (command.name == name) {
      return command.run(session, line.substr(end));
    }
  }
  std::vector<std::string> names;
  for (const ShellCommand& command : ShellCommands()) {
    names.emplace_back(command.name);
  }
  const auto nearest = NearestName(name, names);
  return session.Fail(SyntaxError(fmt::format("there is no command {}", name))
                          .Hint(nearest ? fmt::format("did you mean {}? \\? lists them", *nearest)
                                        : "\\? lists them"));
}

std::vector<std::string> SplitArguments(std::string_view text, std::vector<char>* quotes) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == ' ' || text[at] == '\t' || text[at] == '\r') {
      ++at;
      continue;
    }
    std::string word;
    char quote = 0;
    char opening = 0;
    for (; at < text.size(); ++at) {
      const char c = text[at];
      if (quote == 0 && (c == ' ' || c == '\t' || c == '\r')) {
        break;
      }
      // A double quote inside a word belongs to a name: lab."Out Table".
      if (c == quote || (quote == 0 && word.empty() && (c == '\'' || c == '"'))) {
        quote = quote == 0 ? c : 0;
        opening = c;
      } else {
        word += c;
      }
    }
    words.push_back(std::move(word));
    if (quotes != nullptr) {
      quotes->push_back(opening);
    }
  }
  return words;
}

}  // namespace sluice::server
