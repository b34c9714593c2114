#include <dlfcn.h>
#include <fmt/core.h>

#include "base/mutex.h"
#include "models/trees/xgboost_library_internal.h"

namespace sluice::models {
namespace {

constexpr char kFile[] = "libxgboost.so.0";

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

// Set once, when all of the library is there.
XgboostLibrary loaded;
Mutex loading;
bool is_loaded GUARDED_BY(loading) = false;

}  // namespace

Status LoadXgboost() {
  const MutexLock lock(loading);
  if (is_loaded) {
    return OkStatus();
  }
  // Never closed: its threads live as long as the process.
  void* const handle = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return Missing();
  }
#define SLUICE_FIND(name)                   \
  if (!Find(handle, #name, &loaded.name)) { \
    return Missing();                       \
  }
  SLUICE_EACH_XGBOOST_FUNCTION(SLUICE_FIND)
#undef SLUICE_FIND
  is_loaded = true;
  return OkStatus();
}

const XgboostLibrary& Xgboost() {
  return loaded;
}

}  // namespace sluice::models
