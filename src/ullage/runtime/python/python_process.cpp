// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/python/python_process.h"

#include "ullage/base/find_symbol.h"
#include "ullage/base/optimizer_steps.h"
#include "ullage/runtime/c_api.h"
#include "ullage/runtime/runtime.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

namespace ullage::runtime {
namespace {

// The script that runs in Python. %TOUCH%, %FOLLOWS%, %WHOLE%, %COLLECTS%, %STEP%, %END%, %NAME% and %READY% become
// addresses of functions here. So do %THREAD% and %PLACE% on a card; elsewhere they become 0, because only a card's
// bytes can be away from it. %RECORDING% becomes True or False. Each word must stand in the script once. Higher-order
// ops look up dispatch keys on their own and know nothing
// of fallbacks. So the script adds the interceptor's key to the keys that they let through. Torch itself does so with
// the keys of autocast and the profiler.
constexpr const char* kPrepare = R"(
def _ullage_prepare():
    import sys
    torch = sys.modules.get('torch')
    if torch is None or getattr(torch.__spec__, '_initializing', False):
        return
    import atexit, ctypes, warnings
    touch = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64)(%TOUCH%)
    steps_are = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(%STEP%)
    interpreter_ends = ctypes.CFUNCTYPE(None)(%END%)
    ready = ctypes.CFUNCTYPE(None)(%READY%)
    thread_begins, place_of = %THREAD%, %PLACE%

    def let_key_through():
        import torch._ops as ops
        key = torch._C._parse_dispatch_key('TESTING_ONLY_GenericMode')
        ops._HIGHER_ORDER_OP_DEFAULT_FALLTHROUGH_DISPATCH_KEYS.append(key)  # of those made later
        for op in list(ops._higher_order_ops.values()):
            op.fallthrough(key)
        keys_of = ops.TorchBindOpOverload._fallthrough_keys
        ops.TorchBindOpOverload._fallthrough_keys = lambda self: [*keys_of(self), key]

    def count_steps():
        import threading
        steps, told, lock = OptimizerSteps(), [0], threading.Lock()
        def stepped(optimizer, *_):
            with lock:
                steps.called(optimizer)
                total = steps.total()
                if total != told[0]:
                    told[0] = total
                    steps_are(total)
        sys.modules['torch.optim.optimizer'].register_optimizer_step_post_hook(stepped)

    # Names the parameters of all living modules before the first call of a module and each optimizer's first step.
    def name_parameters_in_time():
        import gc, weakref
        name = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)(%NAME%)
        met = weakref.WeakSet()

        def roots():
            modules = [x for x in gc.get_objects() if issubclass(type(x), torch.nn.Module) and '_modules' in vars(x)]
            inner = {id(child) for module in modules for child in module._modules.values()}
            return [m for m in modules if id(m) not in inner and next(m.parameters(), None) is not None]

        # A single model has no name. Each of several has that of its variable in __main__, else its class's.
        def named_roots():
            found = roots()
            if len(found) < 2:
                return [('', root) for root in found]
            variables = {id(value): key for key, value in vars(sys.modules['__main__']).items() if key[:1] != '_'}
            named, copies = [], {}
            for root in found:
                called = variables.get(id(root)) or type(root).__name__
                copies[called] = copies.get(called, 0) + 1
                named.append((called + (f'#{copies[called]}.' if copies[called] > 1 else '.'), root))
            return named

        def name_all():
            for prefix, root in named_roots():
                for path, parameter in root.named_parameters():
                    try:
                        name(parameter.data_ptr(), (prefix + path).encode())
                    except Exception:
                        pass  # it has no bytes yet

        def before_module(module, _):
            first_call.remove()
            attempt(name_all)

        def before_step(optimizer, *_):
            if optimizer not in met:
                met.add(optimizer)
                attempt(name_all)

        first_call = sys.modules['torch.nn.modules.module'].register_module_forward_pre_hook(before_module)
        sys.modules['torch.optim.optimizer'].register_optimizer_step_pre_hook(before_step)

    def let_storages_be_saved():
        place = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)(place_of)
        checked, copied = torch.UntypedStorage.data_ptr, torch.UntypedStorage.copy_
        def data_ptr(self):
            try:
                return checked(self)
            except RuntimeError as error:
                if 'moved off the card' not in str(error):
                    raise
            return place(self._cdata)
        def copy_(self, source, *how, **named):  # looks at both storages before it calls an op
            for one in (self, source):
                if isinstance(one, torch.UntypedStorage) and one.device.type == 'cuda':
                    touch(place(one._cdata), one.nbytes())
            return copied(self, source, *how, **named)
        torch.UntypedStorage.data_ptr, torch.UntypedStorage.copy_ = data_ptr, copy_

    def tell_of_threads():
        import threading
        tell, run = ctypes.CFUNCTYPE(None)(thread_begins), threading.Thread._bootstrap_inner
        def told(self):
            tell()
            run(self)
        threading.Thread._bootstrap_inner = told

    def touch_inputs(inputs):
        for x in inputs:
            try:
                if isinstance(x, torch.Tensor) and x.device.type == 'cpu':
                    begin = torch._C._data_address(x) - x.storage_offset() * x.element_size()
                    touch(begin, x.untyped_storage().nbytes())
            except Exception:
                pass  # no bytes of its own; what it stands for faults in

    def announce_regions(module):
        graph = module.CompiledFxGraph
        run = graph.__call__
        recorded_as_a_whole = ctypes.CFUNCTYPE(None, ctypes.c_int)(%WHOLE%)
        def run_announced(self, inputs):
            how = self.fx_kwargs
            if how.get('cpp_wrapper'):
                touch_inputs(inputs)
            if how.get('is_inference') or how.get('is_backward'):
                return run(self, inputs)
            recorded_as_a_whole(1)
            try:
                return run(self, inputs)
            finally:
                recorded_as_a_whole(0)
        graph.__call__ = run_announced

    # A C++ kernel of inductor is called with pointers. Here it becomes an op over the tensors that these belong to.
    def make_kernels_ops(module):
        import threading
        follows = ctypes.CFUNCTYPE(ctypes.c_int)(%FOLLOWS%)
        now = threading.local()
        def run(read, written):
            (kernel, arguments), now.call = now.call, None
            kernel(*arguments)
        library = torch.library.Library('ullage', 'FRAGMENT')
        library.define('compiled_kernel(Tensor[] read, Tensor(a!)[] written) -> ()')
        library.impl('compiled_kernel', run, 'CompositeExplicitAutograd')
        module._ullage_library = library  # the op ends with it
        op = torch.ops.ullage.compiled_kernel.default
        modes = torch._C.DispatchKeySet(torch._C.DispatchKey.Python).add(torch._C.DispatchKey.PythonTLSSnapshot)

        # In a plain run, neither autograd nor the program's dispatch modes see these calls. So they see none here.
        def call_unseen(op, *arguments, **named):
            with torch._C._ExcludeDispatchKeyGuard(modes), torch._C._AutoDispatchBelowAutograd():
                return op(*arguments, **named)

        def as_op(kernel, types):
            pointers = [i for i, kind in enumerate(types) if '*' in kind]
            reads = [i for i in pointers if types[i].startswith('const ')]
            writes = [i for i in pointers if i not in reads]
            def run_as_op(*arguments):
                if not follows():
                    return kernel(*arguments)
                now.call = kernel, arguments
                try:
                    call_unseen(op, [arguments[i] for i in reads], [arguments[i] for i in writes])
                finally:
                    now.call = None
            return run_as_op

        # A region's own allocations become ops too, because plans move only what ops made.
        guards, empty = torch._C._dynamo.guards, torch.ops.aten.empty_strided.default
        allocate, cpu = guards._empty_strided_cpu, torch.device('cpu')
        def allocate_by_op(size, stride, dtype):
            if not follows():
                return allocate(size, stride, dtype)
            return call_unseen(empty, size, stride, dtype=dtype, device=cpu)
        guards._empty_strided_cpu = allocate_by_op

        cache = module.CppPythonBindingsCodeCache
        load = cache.load_pybinding_async.__func__
        def load_as_op(cls, argtypes, *more, **named):
            loaded = load(cls, argtypes, *more, **named)
            return (lambda: as_op(loaded(), argtypes)) if cls is cache else loaded
        cache.load_pybinding_async = classmethod(load_as_op)

    patches = {
        'torch._inductor.output_code': announce_regions,
        'torch._inductor.codecache': make_kernels_ops,
    }

    class PatchWhenLoaded:
        @staticmethod
        def find_spec(name, path, target=None):
            patch = patches.pop(name, None)
            if patch is None:
                return None
            if not patches:
                sys.meta_path.remove(PatchWhenLoaded)
            import importlib.machinery
            spec = importlib.machinery.PathFinder.find_spec(name, path)
            if spec is not None and spec.loader is not None:
                load = spec.loader.exec_module
                def load_and_patch(module):
                    load(module)
                    attempt(lambda: patch(module))
                spec.loader.exec_module = load_and_patch
            return spec

    def attempt(what):
        try:
            what()
        except Exception as error:
            warnings.warn(f'ullage: could not prepare this torch, some ops may be slow or refused: {error!r}')

    # A full collection writes to every object, so each page of the heap that was shared by fork is copied.
    def tell_of_collections():
        import gc, os
        collects = ctypes.CFUNCTYPE(None, ctypes.c_int)(%COLLECTS%)
        def collection(phase, info):
            if info['generation'] == 2:
                collects(phase == 'start')
        def watch():
            if collection not in gc.callbacks:
                gc.callbacks.append(collection)
        os.register_at_fork(after_in_parent=watch, after_in_child=watch)

    ready()
    atexit.register(interpreter_ends)
    attempt(let_key_through)
    attempt(count_steps)
    attempt(tell_of_collections)
    if place_of:
        attempt(let_storages_be_saved)
        attempt(tell_of_threads)
    if %RECORDING%:
        attempt(name_parameters_in_time)
    for name in [name for name in patches if name in sys.modules]:
        attempt(lambda: patches.pop(name)(sys.modules[name]))
    if patches:
        sys.meta_path.insert(0, PatchWhenLoaded)

try:
    _ullage_prepare()
except Exception:
    pass
)";

enum class State { Open, Running, Done };
std::atomic<State> state{State::Open};

// What the script calls, by the functions below. An empty one was not set.
struct Callbacks {
  std::function<void(Address, Bytes)> touch;
  std::function<bool()> follows;
  std::function<void(bool)> recorded_as_a_whole, collects;
  std::function<void(std::uint64_t)> steps_are;
  std::function<void()> thread_begins, interpreter_ends;
  std::function<Address(const void*)> place_of_storage;
};

// Never destroyed, because threads of Python may call while the process ends.
Callbacks& callbacks() {
  static auto* set = new Callbacks;
  return *set;
}

int follows() { return callbacks().follows && callbacks().follows() ? 1 : 0; }
void region_recorded(int enters) {
  if (callbacks().recorded_as_a_whole) callbacks().recorded_as_a_whole(enters != 0);
}
void collects(int begins) {
  if (callbacks().collects) callbacks().collects(begins != 0);
}
void steps_are(std::uint64_t total) {
  if (callbacks().steps_are) callbacks().steps_are(total);
}
void interpreter_ends() {
  if (callbacks().interpreter_ends) callbacks().interpreter_ends();
}
// The script calls these two only if they are set.
std::uint64_t place_of(const void* storage) { return callbacks().place_of_storage(storage).value; }
void thread_begins() { callbacks().thread_begins(); }

void ready() { state.store(State::Done); }

// The functions of Python's C interface that are used; all belong to its stable part.
struct PythonCalls {
  int (*is_initialized)();
  int (*run)(const char*);
  int (*add_pending)(int (*)(void*), void*);

  bool complete() const { return is_initialized && run && add_pending; }
};

PythonCalls find_python_calls() {
  PythonCalls python{};
  find_symbol(RTLD_DEFAULT, python.is_initialized, "Py_IsInitialized");
  find_symbol(RTLD_DEFAULT, python.run, "PyRun_SimpleString");
  find_symbol(RTLD_DEFAULT, python.add_pending, "Py_AddPendingCall");
  return python;
}

std::string script() {
  // The script runs in a namespace of its own, because its functions stay alive. If they were in the program's
  // namespace, they would keep that alive too, with all objects that should die at the program's end.
  std::string text = fmt::format("exec(r'''{}{}''', {{'__name__': 'ullage.prepare'}})\n", kOptimizerSteps, kPrepare);
  const auto address_of = [](auto* function) { return std::to_string(reinterpret_cast<std::uintptr_t>(function)); };
  for (const auto& [word, meaning] :
       {std::pair{"%TOUCH%", address_of(&ullage_touch)}, std::pair{"%FOLLOWS%", address_of(&follows)},
        std::pair{"%WHOLE%", address_of(&region_recorded)}, std::pair{"%COLLECTS%", address_of(&collects)},
        std::pair{"%STEP%", address_of(&steps_are)}, std::pair{"%END%", address_of(&interpreter_ends)},
        std::pair{"%NAME%", address_of(&ullage_name_parameter)},
        std::pair{"%THREAD%", callbacks().thread_begins ? address_of(&thread_begins) : "0"},
        std::pair{"%PLACE%", callbacks().place_of_storage ? address_of(&place_of) : "0"},
        std::pair{"%READY%", address_of(&ready)},
        std::pair{"%RECORDING%", std::string(recording() ? "True" : "False")}})
    text.replace(text.find(word), std::string(word).size(), meaning);
  return text;
}

// Called with the interpreter lock held. The script sets the state to Done. If it does not get that far, because torch
// is not imported yet or because of an error, the state becomes Open again.
int run_script(void*) {
  const PythonCalls python = find_python_calls();
  python.run(script().c_str());
  State running = State::Running;
  state.compare_exchange_strong(running, State::Open);
  return 0;
}

// Sets the state to Running. True: the caller is the one that must run the script.
bool begin(const PythonCalls& python) {
  if (!python.complete() || python.is_initialized() == 0) return false;
  State open = State::Open;
  return state.compare_exchange_strong(open, State::Running);
}

}  // namespace

bool in_python() {
  const PythonCalls python = find_python_calls();
  return python.complete() && python.is_initialized() != 0;
}

bool compiler_is_deferred() { return std::getenv("ULLAGE_DEFER_COMPILER") != nullptr; }

void prepare_python_later() {
  if (state.load(std::memory_order_relaxed) != State::Open) return;
  const PythonCalls python = find_python_calls();
  if (begin(python) && python.add_pending(&run_script, nullptr) != 0) state.store(State::Open);  // the queue is full
}

void set_touch(std::function<void(Address, Bytes)> touch) { callbacks().touch = std::move(touch); }
void set_follows(std::function<bool()> follows) { callbacks().follows = std::move(follows); }
void set_recorded_as_a_whole(std::function<void(bool)> recorded) {
  callbacks().recorded_as_a_whole = std::move(recorded);
}
void set_place_of_storage(std::function<Address(const void*)> place) {
  callbacks().place_of_storage = std::move(place);
}
void set_thread_begins(std::function<void()> begins) { callbacks().thread_begins = std::move(begins); }
void set_steps_are(std::function<void(std::uint64_t)> are) { callbacks().steps_are = std::move(are); }
void set_collects(std::function<void(bool)> collects) { callbacks().collects = std::move(collects); }
void set_interpreter_ends(std::function<void()> ends) { callbacks().interpreter_ends = std::move(ends); }

}  // namespace ullage::runtime

void ullage_touch(const void* data, std::uint64_t bytes) {
  const auto& touch = ullage::runtime::callbacks().touch;
  if (touch && data != nullptr && bytes != 0)
    touch(ullage::Address{reinterpret_cast<std::uint64_t>(data)}, ullage::Bytes{bytes});
}
