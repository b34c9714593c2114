#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/shell/describe_queries.h"
#include "server/shell/shell.h"

namespace sluice::server {

// The actions of a person or a script at the shell: runs statements and commands, and shows their
// answers. Not thread-safe.
class ShellSession {
 public:
  enum class Outcome { kOk, kFailed, kOutputClosed, kExit };

  // The connection and the interrupts outlive it.
  ShellSession(const ShellConnection& connection, const ShellOptions& options,
               Interrupts& interrupts, bool interactive);
  ~ShellSession();
  ShellSession(const ShellSession&) = delete;
  ShellSession& operator=(const ShellSession&) = delete;

  // Runs statements and commands up to the first error, which is reported with file and line.
  Outcome Run(const Script& script);
  // The same for a file; `path` as given to \i.
  Outcome Include(const std::string& path);

  // Runs a statement and shows its answer.
  Outcome Show(const std::string& sql) { return Run({sql}); }
  // Rows of a query of the shell's own, as texts.
  using Rows = std::vector<std::vector<std::string>>;
  Result<Rows> Ask(const std::string& sql);
  Result<SqlDialect> Dialect();
  Outcome Load(const LoadOptions& load);

  Display& display() { return display_; }
  // Sends rows to a file or a |command; "" means standard output again.
  Status SetOutput(const std::string& target);
  // The file that is being run; "": none.
  const std::string& file() const { return place_.file; }

  // Prints a line for a person on standard output.
  void Print(std::string_view text);
  Outcome Fail(const Status& status);

 private:
  struct Place {
    std::string file;  // "": typed statements
    int line = 0;
  };
  CopyInput CopyInputOf(const Script& script, const ScriptPart& part);
  Outcome RunStatements(const Script& script, const ScriptPart& part);
  Outcome PrintError(const Status& status, std::string_view text);
  Screen MakeScreen() const;
  template <typename Work>
  Outcome RunShown(const std::vector<Rounding>& rounding, const Work& work, Status* failure,
                   size_t* done);

  const ShellConnection& connection_;
  Display display_;
  Interrupts& interrupts_;
  const bool interactive_;
  const std::string pager_;
  std::optional<SqlDialect> dialect_;
  Place place_;
  std::vector<Place> included_from_;
  std::FILE* output_file_ = nullptr;
  std::unique_ptr<PipedProgram> output_program_;
};

}  // namespace sluice::server
