/* SPDX-License-Identifier: MIT */
/* Replaces libcuda.so.1 where it is missing: cuDNN finds every function, can "load" the kernels
 * it compiled and query their attributes; all other calls fail as in the toolkit's stub.
 * Nothing can be launched. */
#include <stddef.h>
#include <string.h>

enum { STUB_LIBRARY = 34 }; /* CUDA_ERROR_STUB_LIBRARY */

#define REFUSE(name)                                                                               \
    int name(void);                                                                                \
    int name(void)                                                                                 \
    {                                                                                              \
        return STUB_LIBRARY;                                                                       \
    }
#define GRANT(name)                                                                                \
    int name(void);                                                                                \
    int name(void)                                                                                 \
    {                                                                                              \
        return 0;                                                                                  \
    }

REFUSE(cuCtxGetCurrent)
REFUSE(cuCtxGetDevice)
REFUSE(cuCtxGetLimit)
REFUSE(cuCtxPopCurrent)
REFUSE(cuCtxPushCurrent)
REFUSE(cuDeviceGet)
REFUSE(cuDeviceGetAttribute)
REFUSE(cuDeviceGetCount)
REFUSE(cuDevicePrimaryCtxRelease)
REFUSE(cuDevicePrimaryCtxReset)
REFUSE(cuDevicePrimaryCtxRetain)
REFUSE(cuDriverGetVersion)
REFUSE(cuFuncGetAttribute)
REFUSE(cuFuncSetAttribute)
REFUSE(cuGetErrorName)
REFUSE(cuGetErrorString)
REFUSE(cuInit)
REFUSE(cuLaunchCooperativeKernel)
REFUSE(cuLaunchKernel)
REFUSE(cuLaunchKernelEx)
REFUSE(cuLibraryLoadFromFile)
REFUSE(cuLinkAddData)
REFUSE(cuLinkAddData_v2)
REFUSE(cuLinkAddFile_v2)
REFUSE(cuLinkComplete)
REFUSE(cuLinkCreate)
REFUSE(cuLinkCreate_v2)
REFUSE(cuLinkDestroy)
REFUSE(cuMemcpyDtoH_v2)
REFUSE(cuModuleGetFunction)
REFUSE(cuModuleGetGlobal_v2)
REFUSE(cuModuleLoadData)
REFUSE(cuModuleLoadDataEx)
REFUSE(cuModuleLoadFatBinary)
REFUSE(cuModuleUnload)
REFUSE(cuOccupancyMaxActiveBlocksPerMultiprocessor)
REFUSE(cuOccupancyMaxPotentialClusterSize)
REFUSE(cuStreamGetCtx)
REFUSE(cuStreamSynchronize)
REFUSE(cuTensorMapEncodeTiled)
GRANT(cuLibraryUnload)
GRANT(cuKernelSetAttribute)

static int something;
static unsigned char image[1 << 20]; /* of the library loaded last; cuDNN's are some 50 KiB */
static size_t image_size;

int cuLibraryLoadData(void **library, const void *code);
int cuLibraryGetKernel(void **kernel);
int cuKernelGetAttribute(int *value);
int driver_image_has(const void *bytes, size_t size);

/* The section headers of such an ELF file stand last. */
static size_t elf_size(const unsigned char *code)
{
    unsigned long long headers;
    unsigned short each, count;
    memcpy(&headers, code + 40, sizeof headers);
    memcpy(&each, code + 58, sizeof each);
    memcpy(&count, code + 60, sizeof count);
    return headers + (size_t)each * count;
}

int cuLibraryLoadData(void **library, const void *code)
{
    image_size = memcmp(code, "\177ELF", 4) == 0 ? elf_size(code) : 0;
    image_size = image_size <= sizeof image ? image_size : 0;
    memcpy(image, code, image_size);
    *library = &something;
    return 0;
}

int cuLibraryGetKernel(void **kernel)
{
    *kernel = &something;
    return 0;
}

int cuKernelGetAttribute(int *value)
{
    *value = 0;
    return 0;
}

/* Does the library that was loaded last have these bytes in it? -1 when there was none. */
int driver_image_has(const void *bytes, size_t size)
{
    return image_size == 0 ? -1 : memmem(image, image_size, bytes, size) != NULL;
}
