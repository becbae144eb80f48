// SPDX-License-Identifier: Apache-2.0
// CUDA graphs. The number of nodes and of kernels in a graph is counted, and a launch adds its kernels to the ledger.
// What the nodes do is not kept, and nothing is run.

#include "ullage/drycard/card/process.h"
#include "ullage/drycard/card/streams.h"

#include <cstdio>

namespace ullage::drycard {
namespace {

struct Executable {
  std::uint64_t launches = 0;
};

Error instantiate(Executable** executable, const Graph* graph) {
  if (graph == nullptr) return kInvalidValue;
  *executable = new Executable{graph->launches};
  return kSuccess;
}

Error launch(const Executable* executable) {
  if (const Error error = use_current(); error != kSuccess) return error;
  if (executable == nullptr) return kInvalidValue;
  ledger().launches.fetch_add(executable->launches, std::memory_order_relaxed);
  return kSuccess;
}

// The exported functions that call this declare fewer arguments than CUDA's. On x86-64 a function may leave arguments
// unread.
Error add_node(void** node, Graph* graph, std::uint64_t kernels) {
  if (graph == nullptr) return kInvalidValue;
  const std::lock_guard hold(lock());
  graph->launches += kernels;
  if (node != nullptr) *node = reinterpret_cast<void*>(++graph->nodes << 4);
  return kSuccess;
}

// Nodes have no content. A caller that lists them gets made-up handles: multiples of 16.
Error list_nodes(const Graph* graph, void** nodes, std::size_t* count) {
  if (nodes == nullptr) {
    *count = graph->nodes;
    return kSuccess;
  }
  for (std::size_t i = 0; i < *count; ++i) {
    nodes[i] = i < graph->nodes ? reinterpret_cast<void*>((i + 1) << 4) : nullptr;
  }
  if (*count > graph->nodes) *count = graph->nodes;
  return kSuccess;
}

}  // namespace

ULLAGE_CARD_API int cudaGraphCreate(Graph** graph, unsigned) {
  *graph = new Graph;
  return kSuccess;
}
ULLAGE_CARD_API int cudaGraphDestroy(Graph* graph) {
  delete graph;
  return kSuccess;
}
ULLAGE_CARD_API int cudaGraphClone(Graph** clone, const Graph* graph) {
  *clone = new Graph(*graph);
  return kSuccess;
}
ULLAGE_CARD_API int cudaGraphInstantiate(Executable** executable, Graph* graph, unsigned long long) {
  return noted(instantiate(executable, graph));
}
ULLAGE_CARD_API int cudaGraphInstantiateWithFlags(Executable** executable, Graph* graph, unsigned long long) {
  return noted(instantiate(executable, graph));
}
ULLAGE_CARD_API int cudaGraphInstantiateWithParams(Executable** executable, Graph* graph, void*) {
  return noted(instantiate(executable, graph));
}
ULLAGE_CARD_API int cudaGraphExecDestroy(Executable* executable) {
  delete executable;
  return kSuccess;
}
ULLAGE_CARD_API int cudaGraphLaunch(Executable* executable, void*) { return noted(launch(executable)); }
ULLAGE_CARD_API int cudaGraphUpload(Executable*, void*) { return kSuccess; }
ULLAGE_CARD_API int cudaGraphGetNodes(Graph* graph, void** nodes, std::size_t* count) {
  return noted(list_nodes(graph, nodes, count));
}
ULLAGE_CARD_API int cudaGraphGetRootNodes(Graph* graph, void** nodes, std::size_t* count) {
  return noted(list_nodes(graph, nodes, count));
}
// Says that a node has no dependencies. CUDA 12 has three arguments, of which the third is the count. CUDA 13 has four,
// of which the last is the count. The fourth is read only under CUDA 13.
ULLAGE_CARD_API int cudaGraphNodeGetDependencies(void*, void**, void* third, std::size_t* fourth) {
  std::size_t* count = machine().cuda >= 13 ? fourth : static_cast<std::size_t*>(third);
  if (count != nullptr) *count = 0;
  return kSuccess;
}
ULLAGE_CARD_API int cudaGraphNodeGetType(void*, int* type) {
  *type = 0;  // a kernel
  return kSuccess;
}
ULLAGE_CARD_API int cudaGraphAddNode(void** node, Graph* graph) { return noted(add_node(node, graph, 0)); }
ULLAGE_CARD_API int cudaGraphAddKernelNode(void** node, Graph* graph) { return noted(add_node(node, graph, 1)); }
ULLAGE_CARD_API int cudaGraphAddMemcpyNode(void** node, Graph* graph) { return noted(add_node(node, graph, 0)); }
ULLAGE_CARD_API int cudaGraphAddMemsetNode(void** node, Graph* graph) { return noted(add_node(node, graph, 0)); }
ULLAGE_CARD_API int cudaGraphAddEmptyNode(void** node, Graph* graph) { return noted(add_node(node, graph, 0)); }
ULLAGE_CARD_API int cudaGraphAddDependencies() { return kSuccess; }
ULLAGE_CARD_API int cudaGraphConditionalHandleCreate(unsigned long long* handle, Graph*, unsigned, unsigned) {
  *handle = 1;
  return kSuccess;
}
ULLAGE_CARD_API int cudaGraphExecUpdate(Executable* executable, const Graph* graph, void*) {
  if (executable == nullptr || graph == nullptr) return noted(kInvalidValue);
  executable->launches = graph->launches;
  return kSuccess;
}
ULLAGE_CARD_API int cudaGraphKernelNodeSetAttribute() { return kSuccess; }
ULLAGE_CARD_API int cudaGraphKernelNodeSetParams() { return kSuccess; }
ULLAGE_CARD_API int cudaGraphExecKernelNodeSetParams() { return kSuccess; }

ULLAGE_CARD_API int cudaGraphDebugDotPrint(Graph* graph, const char* path, unsigned) {
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return noted(kInvalidValue);
  std::fprintf(file, "digraph dry { /* %llu nodes, of these %llu kernels */ }\n",
               static_cast<unsigned long long>(graph->nodes), static_cast<unsigned long long>(graph->launches));
  std::fclose(file);
  return kSuccess;
}

ULLAGE_CARD_API int cuGraphCreate(Graph** graph, unsigned flags) { return cudaGraphCreate(graph, flags); }
ULLAGE_CARD_API int cuGraphDestroy(Graph* graph) { return cudaGraphDestroy(graph); }
ULLAGE_CARD_API int cuGraphInstantiateWithFlags(Executable** executable, Graph* graph, unsigned long long) {
  return instantiate(executable, graph);
}
ULLAGE_CARD_API int cuGraphExecDestroy(Executable* executable) { return cudaGraphExecDestroy(executable); }
ULLAGE_CARD_API int cuGraphLaunch(Executable* executable, void*) { return launch(executable); }
ULLAGE_CARD_API int cuGraphGetNodes(Graph* graph, void** nodes, std::size_t* count) {
  return list_nodes(graph, nodes, count);
}

}  // namespace ullage::drycard
