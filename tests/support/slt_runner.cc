#include "tests/support/slt_runner.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "executor/executor.h"
#include "planner/compile/python_models.h"
#include "server/sample/sample.h"
#include "server/shell/output.h"
#include "server/statements/session.h"
#include "server/statements/statement.h"
#include "tests/support/finds_torch.h"
#include "tests/support/slt_record.h"

namespace sluice::slt {
namespace {

// Answers as text, in the form of expectations.
class TextSink final : public executor::ResultSink {
 public:
  Status Header(const Schema& schema) override {
    names = schema.Names();
    rows.clear();
    numbers.clear();
    reader_lines.push_back(Join(names));
    return OkStatus();
  }
  Status Rows(const RowBatch& batch) override {
    for (size_t r = 0; r < batch.rows; ++r) {
      std::vector<std::string> cells;
      std::vector<double> values;
      for (size_t c = 0; c < batch.columns.size(); ++c) {
        const RowBatch::Column& column = batch.columns[c];
        const bool null = column.null[r] != 0;
        // In rows like "job|seconds|0.1" the name is a cell.
        const std::string& name = c == 2 && names[0] == "section" ? cells[1] : names[c];
        cells.push_back(null ? "NULL" : CellOf(column, r, name));
        values.push_back(!null && IsNumeric(column.TypeAt(r)) ? column.NumberAt(r) : std::nan(""));
      }
      rows.push_back(Join(cells));
      numbers.push_back(values);
      reader_lines.push_back(rows.back());
    }
    return OkStatus();
  }
  void Notice(const std::string& message) override {
    notices.push_back(message);
    reader_lines.push_back("NOTICE: " + Masked(message));
  }
  void Progress(const elastic::Progress&) override {}
  void Done(const std::string&) override {}

  std::vector<std::string> names;
  std::vector<std::string> rows;
  std::vector<std::vector<double>> numbers;
  std::vector<std::string> notices;
  std::vector<std::string> reader_lines;

 private:
  static std::string Join(const std::vector<std::string>& cells) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      line += (i == 0 ? "" : "|") + cells[i];
    }
    return line;
  }
  // An empty text would look like a missing cell, and a line break like another row.
  static std::string CellOf(const RowBatch::Column& column, size_t row, const std::string& name) {
    static const std::vector<std::string> kVaries = {"seconds", "created", "started", "finished",
                                                     "details"};
    if (std::find(kVaries.begin(), kVaries.end(), name) != kVaries.end()) {
      return "<" + name + ">";
    }
    return Masked(server::CellText(column, row));
  }
  static std::string Masked(std::string text) {
    static const std::regex time(R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?)");
    static const std::regex digest("[0-9a-f]{64}");
    text = std::regex_replace(text, time, "<time>");
    text = std::regex_replace(text, digest, "<sha256>");
    static const std::regex cut("(ctid|rowid) ranges");  // each database cuts tables in its own way
    text = std::regex_replace(text, cut, "<ranges>");
    std::string line;
    for (const char c : text) {
      line += c == '\n' ? "\\n" : std::string(1, c);
    }
    return line.empty() ? "(empty)" : line;
  }
};

std::string JoinLines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += line + "\n";
  }
  return text;
}

// The result of one record: the mismatch, or "".
class RecordRun {
 public:
  RecordRun(const Record& record, server::Session& session)
      : record_(record), status_(server::RunScript(record.statement, session, sink_)) {}

  const TextSink& sink() const { return sink_; }

  std::string Check() {
    const std::string& kind = record_.words[0];
    if (kind == "statement" && record_.words.size() > 1 && record_.words[1] == "error") {
      return CheckError();
    }
    if (!status_.ok()) {
      return "failed:\n" + RenderWithCaret(status_, record_.statement);
    }
    if (kind == "query") {
      return CheckRows();
    }
    if (kind == "metric") {
      return CheckMetric();
    }
    return kind == "notice" ? CheckNotice() : "";
  }

  std::vector<std::string> Rows() const {
    std::vector<std::string> rows = sink_.rows;
    if (HasWord(record_, "rowsort")) {
      std::sort(rows.begin(), rows.end());
    }
    return rows;
  }

 private:
  std::string Rest(std::string_view after) const {
    const size_t at = record_.directive.find(after);
    const size_t begin = record_.directive.find_first_not_of(' ', at + after.size());
    return begin == std::string::npos ? "" : record_.directive.substr(begin);
  }
  std::string CheckError() const {
    if (status_.ok()) {
      return "ran, but an error was expected";
    }
    const std::string text = RenderWithCaret(status_, record_.statement);
    const std::regex wanted(Rest("error"));
    return std::regex_search(text, wanted) ? "" : "another error was expected:\n" + text;
  }
  std::string CheckRows() const {
    const std::string expected = JoinLines(record_.expected);
    const std::string actual = JoinLines(Rows());
    return SameText(expected, actual, ToleranceOf(record_))
               ? ""
               : "expected:\n" + expected + "but it answered:\n" + actual;
  }
  // metric auc >= 0.9
  std::string CheckMetric() const {
    if (record_.words.size() != 4 || sink_.rows.size() != 1) {
      return "wants 'metric <column> >= <number>' and one row";
    }
    const auto name = std::find(sink_.names.begin(), sink_.names.end(), record_.words[1]);
    if (name == sink_.names.end()) {
      return "no column " + record_.words[1];
    }
    const double value = sink_.numbers[0][static_cast<size_t>(name - sink_.names.begin())];
    const double bound = std::stod(record_.words[3]);
    const bool holds = record_.words[2] == ">=" ? value >= bound : value <= bound;
    return holds ? ""
                 : fmt::format("{} is {}, not {} {}", record_.words[1], value, record_.words[2],
                               record_.words[3]);
  }
  std::string CheckNotice() const {
    const std::regex wanted(Rest("notice"));
    for (const std::string& notice : sink_.notices) {
      if (std::regex_search(notice, wanted)) {
        return "";
      }
    }
    return "no such notice; there were:\n" + JoinLines(sink_.notices);
  }

  const Record& record_;
  TextSink sink_;
  Status status_;
};

// reconnect [ROLE]: a new session, in PostgreSQL as that role; the catalog stays the gateway's.
Result<catalog::Database> Reconnect(const Record& record, const catalog::Database& database) {
  std::string url = database.source->url();
  catalog::Principal who = database.catalog->principal();
  const size_t at = url.find('@');
  const size_t user = url.find("//");
  if (record.words.size() > 1 && at != std::string::npos && user != std::string::npos) {
    url.replace(user + 2, at - user - 2, record.words[1]);
    who.role = record.words[1];
  }
  catalog::Database opened;
  ASSIGN_OR_RETURN(opened.source, catalog::OpenDataSource(url, database.source->secret()));
  opened.catalog = database.catalog->For(std::move(who));
  return opened;
}

// sample census 2000 INTO t [seed 7]
std::string RunSample(const Record& record, catalog::DataSource& source) {
  if (record.words.size() < 5 || record.words[3] != "INTO") {
    return "wants 'sample <kind> <rows> INTO <table> [seed <n>]'";
  }
  const uint64_t seed = record.words.size() == 7 ? std::stoull(record.words[6]) : 1;
  const auto generator = server::MakeSample(record.words[1], seed);
  if (!generator.ok()) {
    return generator.status().ToString();
  }
  const auto written = server::WriteSample(**generator, std::stoll(record.words[2]),
                                           {"", record.words[4]}, source, [](int64_t) {}, {});
  return written.ok() ? "" : written.status().ToString();
}

// Whether a `require` is satisfied.
bool IsThere(const std::string& what, const catalog::DataSource& source) {
  if (what == "shared") {
    return std::filesystem::exists(SLUICE_SOURCE_DIR "/../shared/data");
  }
  if (what == "torch") {
    return planner::FindsTorch(planner::PythonOptions());
  }
  return what == source.dialect() || (what == "postgres" && source.dialect() == "postgresql");
}

// A folder for the models that a script exports, which it names by file alone.
class ExportFolder {
 public:
  ExportFolder()
      : path_(std::filesystem::temp_directory_path() / fmt::format("sluice_slt_{}", getpid())) {}
  ~ExportFolder() { std::filesystem::remove_all(path_); }
  void GiveTo(server::Session* session) const { session->KeepModelFilesIn(path_.string()); }

 private:
  const std::filesystem::path path_;
};

}  // namespace

Outcome RunSlt(const std::string& name, std::string_view script, catalog::Database& database) {
  catalog::DataSource& source = *database.source;
  Outcome outcome;
  std::vector<std::string> lines = SplitLines(script);
  std::vector<catalog::Database> reconnected;
  auto session = std::make_unique<server::Session>(source, *database.catalog, "tester");
  session->CompilePythonWith(planner::PythonOptions().program, false);
  const ExportFolder exports;
  exports.GiveTo(session.get());
  ptrdiff_t shift = 0;  // lines that rewriting has added so far
  for (const Record& record : SplitRecords(lines)) {
    const std::string& kind = record.words[0];
    if (!record.only.empty() && record.only != source.dialect()) {
      continue;
    }
    std::string wrong;
    if (kind == "require") {
      if (record.words.size() < 2 || !IsThere(record.words[1], source)) {
        outcome.skipped = true;
        break;
      }
    } else if (kind == "sample") {
      wrong = RunSample(record, source);
    } else if (kind == "reconnect") {
      auto opened = Reconnect(record, database);
      if (opened.ok()) {
        session = std::make_unique<server::Session>(*opened->source, *opened->catalog, "tester");
        exports.GiveTo(session.get());
        reconnected.push_back(std::move(opened).value());
      } else {
        wrong = opened.status().ToString();
      }
    } else if (!TakesStatement(kind)) {
      wrong = "no directive '" + kind + "'";
    } else {
      RecordRun run(record, *session);
      wrong = run.Check();
      if (!wrong.empty() && kind == "query" && record.has_separator) {
        const std::vector<std::string> rows = run.Rows();
        const auto first = lines.begin() + static_cast<ptrdiff_t>(record.first_expected) + shift;
        const auto old_count = static_cast<ptrdiff_t>(record.expected.size());
        const auto at = lines.erase(first, first + old_count);
        lines.insert(at, rows.begin(), rows.end());
        shift += static_cast<ptrdiff_t>(rows.size()) - old_count;
      }
    }
    if (!wrong.empty()) {
      outcome.mismatches.push_back(
          {fmt::format("{}:{}", name, record.line), record.statement + wrong});
    }
  }
  outcome.rewritten = JoinLines(lines);
  return outcome;
}

std::string RunForReader(std::string_view script, catalog::Database& database) {
  server::Session session(*database.source, *database.catalog, "tester");
  TextSink sink;
  const Status status = server::RunScript(script, session, sink);
  return JoinLines(sink.reader_lines) + RenderWithCaret(status, script);
}

bool SameText(std::string_view expected, std::string_view actual, double tolerance) {
  if (tolerance == 0) {
    return expected == actual;
  }
  const std::string left(expected);
  const std::string right(actual);
  static const std::regex number(R"([-+]?\d+\.\d+(e[-+]?\d+)?)");
  std::sregex_iterator a(left.begin(), left.end(), number);
  std::sregex_iterator b(right.begin(), right.end(), number);
  for (; a != std::sregex_iterator() && b != std::sregex_iterator(); ++a, ++b) {
    const double x = std::stod(a->str());
    const double y = std::stod(b->str());
    if (std::abs(x - y) > tolerance * std::max(1.0, std::abs(x))) {
      return false;
    }
  }
  return a == std::sregex_iterator() && b == std::sregex_iterator() &&
         std::regex_replace(left, number, "#") == std::regex_replace(right, number, "#");
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool UpdateGolden() {
  const char* update = std::getenv("UPDATE_GOLDEN");
  return update != nullptr && std::string_view(update) == "1";
}

}  // namespace sluice::slt
