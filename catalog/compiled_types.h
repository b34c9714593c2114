#pragma once

#include <string>
#include <string_view>

namespace sluice::catalog {

// The schema of the compiled forms of model types. They are stored like types, each under its key;
// List and hints leave them out.
inline constexpr std::string_view kCompiledTypes = "~compiled";

// A job that begins with a compiled form stores a record of this name (JobStore::KeepRecord): until
// it has ended, KeepLatest drops no form of that key, so that whoever continues the job finds it.
inline constexpr std::string_view kFormInUse = "compiled form/";
inline std::string RecordOfForm(std::string_view key) {
  return std::string(kFormInUse) + std::string(key);
}

}  // namespace sluice::catalog
