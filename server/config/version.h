#pragma once

namespace sluice::server {

// The project's version, as the root CMakeLists.txt has it.
extern const char* const kVersion;

}  // namespace sluice::server
