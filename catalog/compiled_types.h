#pragma once

#include <string_view>

namespace sluice::catalog {

// The schema of the compiled forms of model types. They are stored like types, each under its key;
// List and hints leave them out.
inline constexpr std::string_view kCompiledTypes = "~compiled";

}  // namespace sluice::catalog
