#include "models/kernels/kernels.h"

#include "models/kernels/kernels_table_internal.h"

namespace sluice::models {

KernelSets SupportedKernels() {
  KernelSets supported;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  const bool avx512 =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512bw") != 0;
  if (avx512 && avx2) {
    supported.sets[supported.count++] = &Avx512Kernels();
  }
  if (avx2) {
    supported.sets[supported.count++] = &Avx2Kernels();
  }
#endif
  supported.sets[supported.count++] = &BaselineKernels();
  return supported;
}

const Kernels& ActiveKernels() {
  static const Kernels& best = *SupportedKernels().sets[0];
  return best;
}

}  // namespace sluice::models
