#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "base/status.h"
#include "server/command_line_internal.h"
#include "server/commands.h"
#include "server/config/terminal.h"
#include "server/shell/shell.h"

namespace sluice::server {
namespace {

void AddSample(CLI::App& app, CommandLine& line) {
  CLI::App* sample = app.add_subcommand("sample", "Make a table of sample data of any size");
  sample->add_option("kind", line.sample.kind, "what kind of data")
      ->check(CLI::IsMember({"census", "clicks"}))
      ->required();
  sample->add_option("--rows", line.sample.rows, "how many")
      ->check(CLI::PositiveNumber)
      ->required();
  auto* const into = sample->add_option("--into", line.sample.into,
                                        "data source: sqlite:PATH or postgresql://...");
  sample->add_option("--into-file", line.sample.into_file, "file that holds the data source")
      ->excludes(into);
  sample->add_option("--table", line.sample.table, "name of the table (default: the kind)");
  sample->add_option("--seed", line.sample.seed, "the same seed makes the same rows")
      ->capture_default_str();
  sample->add_flag("--replace", line.sample.replace, "drop an existing table of that name first");
  sample->callback([&line] { line.run = [&line] { return RunSample(line.sample); }; });
}

void AddLoad(CLI::App& app, CommandLine& line) {
  CLI::App* load = app.add_subcommand("load", "Bring a CSV file into a table");
  AddCommon(*load, line.common);
  load->add_option("file", line.load.file, "UTF-8, RFC 4180; - is standard input")->required();
  load->add_option("table", line.load.table, "new table; types are inferred from all rows")
      ->required();
  load->add_flag("--append", line.load.append,
                 "append to an existing table, by the names in the header");
  load->add_flag_callback(
      "--no-header", [&line] { line.load.has_header = false; }, "the first line is a row");
  load->add_option("--separator", line.separator,
                   "one character, or tab (default: , ; tab or |, as in the first line)");
  load->add_flag("--lossy", line.load.lossy, "load ? for each byte that is not UTF-8");
  load->add_option("--null", line.load.null_text, "text that means NULL, as an empty field does");
  load->callback([&line] {
    line.run = [&line] {
      if (line.separator.size() == 1 && line.separator != "\"" && line.separator != "\n") {
        line.load.separator = line.separator.front();
      } else if (line.separator == "tab" || line.separator == "\\t") {
        line.load.separator = '\t';
      } else if (!line.separator.empty()) {
        SayError(
            InvalidArgument(fmt::format("--separator is one character, not '{}'", line.separator)),
            "");
        return kExitUsage;
      }
      return WithConfig(line.common,
                        [&line](const Config& config) { return RunLoad(config, line.load); });
    };
  });
}

}  // namespace

void AddTables(CLI::App& app, CommandLine& line) {
  AddSample(app, line);
  AddLoad(app, line);
}

}  // namespace sluice::server
