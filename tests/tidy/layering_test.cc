// The floor plan of the house as a test: who may include whom, which third-party headers stay
// inside .cc files, and what no file may contain.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = SLUICE_SOURCE_DIR;

// A part may include itself and what its row lists. A trailing file name narrows the permission.
const std::map<std::string, std::set<std::string>> kFloorPlan = {
    {"base", {}},
    {"parser", {"base"}},
    {"catalog", {"base"}},
    {"models", {"base"}},
    {"planner", {"base", "catalog", "parser", "models"}},
    {"elastic", {"base", "catalog", "models", "planner/plan.pb.h", "planner/plan.proto"}},
    {"k8s", {"base", "elastic/fleet.h"}},
    {"executor", {"base", "catalog", "models", "planner", "elastic", "k8s"}},
    {"server", {"base", "parser", "catalog", "models", "planner", "elastic", "k8s", "executor"}},
};

// Heavy or foreign headers: never in a header of ours, so that nobody pays for them twice.
const std::vector<std::string> kOnlyInSources = {
    "pqxx/",    "libpq-fe.h",      "sqlite3.h",  "boost/",     "Eigen/",    "grpcpp/",
    "grpc/",    "google/protobuf", "rapidjson/", "curl/",      "spdlog/",   "CLI/",
    "xgboost/", "pg_query.h",      "openssl/",   "histedit.h", "editline/", ".pb.h",
};

struct Line {
  fs::path file;
  int number = 0;
  std::string text;
  std::string Place() const {
    return fs::relative(file, kRoot).string() + ":" + std::to_string(number) + ": " + text;
  }
};

bool IsSource(const fs::path& path) {
  return path.extension() == ".h" || path.extension() == ".cc" || path.extension() == ".proto";
}

std::vector<Line> Lines(const fs::path& file) {
  std::vector<Line> lines;
  std::ifstream in(file);
  std::string text;
  for (int number = 1; std::getline(in, text); ++number) {
    lines.push_back({file, number, text});
  }
  return lines;
}

std::vector<fs::path> SourcesIn(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && IsSource(entry.path())) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The path inside an #include "..." or import "..." line; empty otherwise.
std::string IncludedPath(const std::string& line) {
  for (const std::string prefix : {"#include \"", "#include <", "import \""}) {
    if (line.rfind(prefix, 0) == 0) {
      const size_t end = line.find_first_of("\">", prefix.size());
      return line.substr(prefix.size(), end - prefix.size());
    }
  }
  return "";
}

TEST(Layering, APartIncludesOnlyWhatTheFloorPlanAllows) {
  int seen = 0;
  for (const auto& [part, allowed] : kFloorPlan) {
    if (!fs::exists(kRoot / part)) {
      continue;
    }
    for (const fs::path& file : SourcesIn(kRoot / part)) {
      for (const Line& line : Lines(file)) {
        const std::string path = IncludedPath(line.text);
        const std::string target = path.substr(0, path.find('/'));
        if (path.find('/') == std::string::npos || kFloorPlan.count(target) == 0 ||
            target == part) {
          continue;
        }
        ++seen;
        EXPECT_TRUE(allowed.count(target) != 0 || allowed.count(path) != 0)
            << line.Place() << "\n"
            << part << "/ may not include " << path;
      }
    }
  }
  EXPECT_GT(seen, 50) << "the test looked at nothing";
}

TEST(Layering, ThirdPartyHeadersStayInSources) {
  for (const auto& [part, allowed] : kFloorPlan) {
    for (const fs::path& file : SourcesIn(kRoot / part)) {
      const std::string name = file.filename().string();
      if (file.extension() != ".h" || name.find("_internal.h") != std::string::npos) {
        continue;
      }
      for (const Line& line : Lines(file)) {
        const std::string path = IncludedPath(line.text);
        for (const std::string& heavy : kOnlyInSources) {
          EXPECT_EQ(path.find(heavy), std::string::npos) << line.Place();
        }
      }
    }
  }
}

TEST(Tidy, NoUnfinishedWorkAndNoVagueNames) {
  const std::vector<std::string> banned = {std::string("TO") + "DO", std::string("FIX") + "ME",
                                           std::string("XX") + "X:", std::string("std::") + "endl"};
  for (const auto& [part, allowed] : kFloorPlan) {
    for (const fs::path& file : SourcesIn(kRoot / part)) {
      const std::string name = file.stem().string();
      for (const std::string vague : {"util", "helper", "manager", "misc", "common"}) {
        EXPECT_EQ(name.find(vague), std::string::npos)
            << file << ": find the concept that the name hides";
      }
      for (const Line& line : Lines(file)) {
        for (const std::string& word : banned) {
          EXPECT_EQ(line.text.find(word), std::string::npos) << line.Place();
        }
        EXPECT_LE(line.text.size(), 140U) << line.Place();
      }
    }
  }
}

TEST(Tidy, EveryFolderSaysWhatItIs) {
  for (const auto& [part, allowed] : kFloorPlan) {
    EXPECT_TRUE(fs::exists(kRoot / part / "README.md")) << part << "/README.md is missing";
  }
}

TEST(Tidy, TheEnvironmentIsReadInOnePlace) {
  for (const auto& [part, allowed] : kFloorPlan) {
    for (const fs::path& file : SourcesIn(kRoot / part)) {
      if (file.filename() == "config.cc") {
        continue;
      }
      for (const Line& line : Lines(file)) {
        EXPECT_EQ(line.text.find("getenv("), std::string::npos) << line.Place();
      }
    }
  }
}

}  // namespace
