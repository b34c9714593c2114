#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace sluice::executor {

// Where statements find files of models. Errors: 42501 not allowed, 58P01 there is none, 58P02
// there is one already, 53100 the disk is full, 58030 the system's own. Stateless: thread-safe.
class ModelFolder {
 public:
  // nullopt: names are paths, used with this process's rights. Else they are names in this folder,
  // without links and '..'; it and the folder around it are created, for this user alone. "": there
  // are no files.
  explicit ModelFolder(std::optional<std::string> root) : root_(std::move(root)) {}

  // An ordinary file of up to so many bytes (53200).
  Result<std::string> Read(const std::string& name, int64_t most_bytes) const;
  // Creates the file, which only this user can read; at its name it is complete, and on disk.
  // `overwrite`: replaces an ordinary file.
  Status Write(const std::string& name, std::string_view bytes, bool overwrite,
               const std::stop_token& stop) const;

 private:
  std::optional<std::string> root_;
};

}  // namespace sluice::executor
