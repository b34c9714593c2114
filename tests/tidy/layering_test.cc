// The architecture as a test: which folders may include which, which third-party headers stay
// inside .cc files, and what no file may contain.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/tidy/floor_plan.h"

namespace {

using sluice::kFloorPlan;
using sluice::kFolders;

namespace fs = std::filesystem;

const fs::path kRoot = SLUICE_SOURCE_DIR;

// The part that a file of the tree belongs to; empty: none.
std::string PartOf(const std::string& file) {
  std::string longest;
  for (const auto& [part, allowed] : kFloorPlan) {
    if (part.size() > longest.size() && (file == part || file.rfind(part + "/", 0) == 0)) {
      longest = part;
    }
  }
  return longest;
}

// The hand-written source of an included file.
std::string SourceOf(std::string path) {
  for (const std::string generated : {".grpc.pb.h", ".pb.h"}) {
    if (path.size() > generated.size() &&
        path.compare(path.size() - generated.size(), generated.size(), generated) == 0) {
      return path.substr(0, path.size() - generated.size()) + ".proto";
    }
  }
  return path;
}

bool IsOurs(const std::string& path) {
  return std::count(kFolders.begin(), kFolders.end(), path.substr(0, path.find('/'))) > 0 &&
         path.find('/') != std::string::npos;
}

bool MayInclude(const std::string& file, const std::string& included) {
  if (!IsOurs(included)) {
    return true;
  }
  const std::string source = SourceOf(included);
  const std::string part = PartOf(file);
  const auto row = kFloorPlan.find(part);
  return row != kFloorPlan.end() &&
         (PartOf(source) == part || row->second.count(PartOf(source)) != 0 ||
          row->second.count(source) != 0);
}

// Heavy or foreign headers: never in our headers, so that no file includes them unknowingly.
const std::vector<std::string> kOnlyInSources = {
    "pqxx/",           "libpq-fe.h", "sqlite3.h", "boost/",  "Eigen/",    "grpcpp/",  "grpc/",
    "google/protobuf", "rapidjson/", "curl/",     "spdlog/", "CLI/",      "xgboost/", "pg_query.h",
    "openssl/",        "histedit.h", "editline/", ".pb.h",   "yaml-cpp/",
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

// The path inside an #include "..." or import "..." line, however it is spelled; empty otherwise.
std::string IncludedPath(const std::string& line) {
  static const std::regex kIncludes(
      R"re(\s*(?:#\s*include\s*|import\s+(?:public\s+|weak\s+)?)(["<])([^">]*)[">].*)re");
  if (line.find("include") == std::string::npos && line.find("import") == std::string::npos) {
    return "";
  }
  std::smatch found;
  return std::regex_match(line, found, kIncludes) ? found[2].str() : "";
}

TEST(Layering, APartIncludesOnlyWhatTheFloorPlanAllows) {
  int seen = 0;
  for (const std::string& folder : kFolders) {
    for (const fs::path& path : SourcesIn(kRoot / folder)) {
      const std::string file = fs::relative(path, kRoot).string();
      EXPECT_NE(PartOf(file), "") << file << " is in no part of the floor plan";
      for (const Line& line : Lines(path)) {
        const std::string included = IncludedPath(line.text);
        // "../rpc/links.h" would pass every row of the floor plan.
        EXPECT_FALSE(included.starts_with('.')) << line.Place() << "\nname it from the root";
        if (!IsOurs(included)) {
          continue;
        }
        ++seen;
        EXPECT_TRUE(MayInclude(file, included)) << line.Place() << "\n"
                                                << PartOf(file) << " may not include " << included;
      }
    }
  }
  EXPECT_GT(seen, 50) << "the test looked at nothing";
}

TEST(Layering, TheFloorPlanHasNoCycles) {
  std::map<std::string, std::set<std::string>> left;
  for (const auto& [part, allowed] : kFloorPlan) {
    for (const std::string& each : allowed) {
      EXPECT_NE(PartOf(each), "") << part << " may include " << each << ", which is nowhere";
      left[part].insert(PartOf(each));
    }
    left[part];
  }
  for (bool found = true; found;) {
    found = false;
    for (auto part = left.begin(); part != left.end();) {
      if (std::none_of(part->second.begin(), part->second.end(),
                       [&](const std::string& below) { return left.count(below) != 0; })) {
        part = left.erase(part);
        found = true;
      } else {
        ++part;
      }
    }
  }
  EXPECT_TRUE(left.empty()) << "among others " << left.begin()->first;
}

TEST(Layering, AForbiddenIncludeIsSeen) {
  const std::vector<std::pair<std::string, std::string>> forbidden = {
      {"base/status.cc", "catalog/sql/sql_text.h"},
      {"catalog/sql/sql_text.cc", "catalog/data_source.h"},
      {"catalog/postgres/postgres_source.cc", "catalog/sqlite/sqlite_source.h"},
      {"models/kernels/kernels.cc", "models/networks/loss.h"},
      {"models/features/cell_format.cc", "models/model.h"},
      {"planner/derive.cc", "elastic/job/fleet_job.h"},
      {"elastic/queue/task_queue.cc", "elastic/storage/journal.h"},
      {"elastic/storage/checkpoint.cc", "elastic/rpc/elastic.pb.h"},
      {"elastic/parameters/partition_state.cc", "elastic/rpc/elastic.grpc.pb.h"},
      {"elastic/master/master.h", "elastic/job/fleet_job.h"},
      {"elastic/worker/worker.h", "elastic/master/master_host.h"},
      {"k8s/pod_fleet.cc", "elastic/master/master_host.h"},
      {"k8s/watch.cc", "catalog/data_source.h"},
      {"executor/training/train.cc", "elastic/master/master_host.h"},
      {"executor/processes/local_fleet.cc", "executor/executor.h"},
      {"executor/jobs/job_record.cc", "executor/training/train.h"},
      {"executor/scoring/scorer.cc", "executor/in_process/train_here.h"},
      {"executor/contest/contest.cc", "executor/training/train_report.h"},
      {"executor/training/train.cc", "executor/local/local_cluster.h"},
      {"server/gateway/sqlflow_service.cc", "server/shell/progress_bar.h"},
      {"server/statements/statement.cc", "server/gateway/gateway.h"},
      {"server/pgwire/values.cc", "server/gateway/gateway.h"},
  };
  for (const auto& [file, included] : forbidden) {
    EXPECT_TRUE(fs::exists(kRoot / SourceOf(file))) << file;
    EXPECT_TRUE(fs::exists(kRoot / SourceOf(included))) << included;
    EXPECT_FALSE(MayInclude(file, included)) << file << " includes " << included;
  }
  EXPECT_TRUE(MayInclude("elastic/rpc/wire.cc", "elastic/rpc/elastic.grpc.pb.h"));
  EXPECT_TRUE(MayInclude("executor/in_process/train_trees.cc", "elastic/worker/split.h"));
}

TEST(Layering, AnIncludeIsSeenHoweverItIsSpelled) {
  EXPECT_EQ(IncludedPath("#include \"base/status.h\""), "base/status.h");
  EXPECT_EQ(IncludedPath("#include <base/status.h>"), "base/status.h");
  EXPECT_EQ(IncludedPath("  #  include\t\"base/status.h\"  // why"), "base/status.h");
  EXPECT_EQ(IncludedPath("import public \"models/model.proto\";"), "models/model.proto");
  EXPECT_EQ(IncludedPath("// #include \"base/status.h\""), "");
}

TEST(Layering, ThirdPartyHeadersStayInSources) {
  for (const std::string& folder : kFolders) {
    for (const fs::path& file : SourcesIn(kRoot / folder)) {
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
  for (const std::string& folder : kFolders) {
    for (const fs::path& file : SourcesIn(kRoot / folder)) {
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
    EXPECT_TRUE(!fs::is_directory(kRoot / part) || fs::exists(kRoot / part / "README.md"))
        << part << "/README.md is missing";
  }
  for (const std::string& folder : kFolders) {
    EXPECT_TRUE(fs::exists(kRoot / folder / "README.md")) << folder << "/README.md is missing";
  }
}

TEST(Tidy, TheEnvironmentIsReadInOnePlace) {
  for (const std::string& folder : kFolders) {
    for (const fs::path& file : SourcesIn(kRoot / folder)) {
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
