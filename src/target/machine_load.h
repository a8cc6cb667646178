#pragma once
// Whether other programs use this machine: what is measured beside them may be luck.

namespace twinkle::target {

// If asked before work of our own begins: runnable processes, as a mean of the last minute.
double load_of_others();
// Whether they leave no core free.
bool is_busy(double load);

}  // namespace twinkle::target
