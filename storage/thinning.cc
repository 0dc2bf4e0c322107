#include "storage/thinning.h"

namespace loopfleet::storage {

std::size_t RemoveSamples(const ThinningRule& rule, Measurement& measurement) {
  const Thinned before{.samples_before = static_cast<std::uint32_t>(SampleCount(measurement)),
                       .accepted_before = static_cast<std::uint32_t>(AcceptedSamples(measurement))};
  const std::size_t here = measurement.samples_ns.size();
  const std::size_t left = SamplesLeft(rule, before.samples_before);
  if (here <= left) return 0;
  // Every n-th sample from the first on, with the least n that leaves no more than `left`.
  const std::size_t every = left == 0 ? here : (here + left - 1) / left;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < here && kept < left; i += every, ++kept) {
    measurement.samples_ns[kept] = measurement.samples_ns[i];
    measurement.sample_flags[kept] = measurement.sample_flags[i];
  }
  measurement.samples_ns.resize(kept);
  measurement.sample_flags.resize(kept);
  measurement.thinned = before;
  return here - kept;
}

}  // namespace loopfleet::storage
