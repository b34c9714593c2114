// No C++ type has the name of a protobuf message of its namespace: files that do not include each
// other would each compile, and the linker would mix the two.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/tidy/floor_plan.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

void ForEachLine(std::string_view extension,
                 const std::function<void(const fs::path&, const std::string&)>& see) {
  for (const std::string& folder : kFolders) {
    for (const fs::directory_entry& entry :
         fs::recursive_directory_iterator(fs::path(SLUICE_SOURCE_DIR) / folder)) {
      if (entry.path().extension() != extension) {
        continue;
      }
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) {
        see(entry.path(), line);
      }
    }
  }
}

// With their namespaces.
std::set<std::string> Messages() {
  static const std::regex package(R"(package ([\w.]+);)"), message(R"((?:message|enum) (\w+).*)");
  std::set<std::string> messages;
  std::string space;
  ForEachLine(".proto", [&](const fs::path&, const std::string& line) {
    std::smatch found;
    if (std::regex_match(line, found, package)) {
      space = std::regex_replace(found[1].str(), std::regex("\\."), "::");
    } else if (std::regex_match(line, found, message)) {
      messages.insert(space + "::" + found[1].str());
    }
  });
  return messages;
}

TEST(Names, NoTypeIsCalledLikeAMessageOfItsNamespace) {
  static const std::regex space(R"(namespace ([\w:]*) ?\{)"),
      type(R"((?:class|struct|enum|enum class) (?:\w+\(".*"\) )?(\w+)(?: final)?(?: : .*)? \{.*)");
  const std::set<std::string> messages = Messages();
  EXPECT_GT(messages.size(), 200U);
  size_t types = 0;
  for (const char* extension : {".h", ".cc"}) {
    std::vector<std::string> open;
    bool only_declares = false;  // so far, the namespace that is open; then its end has no comment
    fs::path file;
    ForEachLine(extension, [&](const fs::path& path, const std::string& line) {
      if (path != file) {
        EXPECT_TRUE(open.empty()) << file << " does not close " << open.back();
        open.clear();
        file = path;
      }
      const char first = line.empty() ? ' ' : line.front();
      std::smatch found;
      if (first == 'n' && std::regex_match(line, found, space)) {
        open.push_back(found[1]);
        only_declares = true;
      } else if (line.starts_with("}  // namespace") || (line == "}" && only_declares)) {
        ASSERT_FALSE(open.empty()) << path << " closes too many";
        open.pop_back();
      } else if (first != 'c' && first != 's' && first != 'e') {
        only_declares = false;
      } else if (std::regex_match(line, found, type)) {
        ++types;
        std::string name;
        for (const std::string& outer : open) {
          name += outer + "::";
        }
        EXPECT_FALSE(messages.contains(name + found[1].str())) << path << ": " << line;
      }
    });
  }
  EXPECT_GT(types, 500U);
}

}  // namespace
}  // namespace sluice
