// Every event that SHOW JOB may show is documented in docs/operations.md.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

namespace {

namespace fs = std::filesystem;

const fs::path kSources = SLUICE_SOURCE_DIR;

std::string TextOf(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The first arguments of all calls that make an event.
std::set<std::string> Events(const std::string& code) {
  static const std::regex call(R"((?:AddEvent|on_event|Event|Announce)\(([^,;]*"[^,;]*),)");
  static const std::regex name(R"rx("([a-z]+_[a-z_]+|resumed|staleness|degraded)")rx");
  std::set<std::string> events;
  for (std::sregex_iterator found(code.begin(), code.end(), call), end; found != end; ++found) {
    const std::string argument = (*found)[1];
    for (std::sregex_iterator one(argument.begin(), argument.end(), name); one != end; ++one) {
      events.insert((*one)[1]);
    }
  }
  return events;
}

TEST(Events, AreAllInTheDocs) {
  const std::string docs = TextOf(kSources / "docs/operations.md");
  std::set<std::string> events = {"database_waits",
                                  "rows_read_again"};  // elastic/master/progress.h
  for (const char* folder : {"elastic", "executor"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kSources / folder)) {
      if (entry.path().extension() == ".cc") {
        events.merge(Events(TextOf(entry.path())));
      }
    }
  }
  EXPECT_GT(events.size(), 25U);
  for (const std::string& event : events) {
    EXPECT_NE(docs.find("`" + event + "`"), std::string::npos) << event;
  }
}

}  // namespace
