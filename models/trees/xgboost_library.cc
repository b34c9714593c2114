#include <dlfcn.h>
#include <fmt/core.h>

#include "models/trees/xgboost_library_internal.h"

namespace sluice::models {
namespace {

constexpr char kFile[] = "libxgboost.so.0";

struct Loaded {
  XgboostLibrary library;
  Status status;
};

Status Missing() {
  // The answer belongs to this thread.
  const char* const why = dlerror();  // NOLINT(concurrency-mt-unsafe)
  return FailedPrecondition(fmt::format("boosted trees need XGBoost's library, {}", kFile))
      .SqlState("58P01")
      .Detail(why != nullptr ? why : "")
      .Hint("on Debian: apt-get install libxgboost0");
}

template <typename Function>
bool Find(void* handle, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(handle, name));
  return *function != nullptr;
}

Loaded Load() {
  Loaded loaded;
  // Never closed: its threads live as long as the process.
  void* const handle = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  bool found = handle != nullptr;
#define SLUICE_FIND(name) found = found && Find(handle, #name, &loaded.library.name);
  SLUICE_EACH_XGBOOST_FUNCTION(SLUICE_FIND)
#undef SLUICE_FIND
  if (!found) {
    loaded.status = Missing();
  }
  return loaded;
}

const Loaded& Once() {
  static const Loaded loaded = Load();
  return loaded;
}

}  // namespace

Status LoadXgboost() {
  return Once().status;
}

const XgboostLibrary& Xgboost() {
  return Once().library;
}

}  // namespace sluice::models
